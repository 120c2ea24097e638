/*
 * The keys that decide what a field is called, under ecCodes' names: numbers out of the sections' bytes, or computed from
 * them. A key that a message does not have (its template has no such field, its section ends before it) is not defined,
 * and no condition on it holds.
 */
#ifndef SQ_FORMAT_GRIB_KEYS_H
#define SQ_FORMAT_GRIB_KEYS_H

#include "format/grib/product.h"

/* gen/grib_tables.py reads this list: a new key in ecCodes' conditions goes here. */
#define SQ_GRIB_KEYS(X)                                                                                                                    \
    /* both editions */                                                                                                                    \
    X(centre)                                                                                                                              \
    X(subCentre)                                                                                                                           \
    X(typeOfGeneratingProcess)                                                                                                             \
    X(generatingProcessIdentifier)                                                                                                         \
    X(stepType) /* 1: accum; 0: another */                                                                                                 \
    /* edition 1, PDS */                                                                                                                   \
    X(table2Version)                                                                                                                       \
    X(indicatorOfParameter)                                                                                                                \
    X(indicatorOfTypeOfLevel)                                                                                                              \
    X(level)                                                                                                                               \
    X(topLevel)                                                                                                                            \
    X(bottomLevel)                                                                                                                         \
    X(timeRangeIndicator)                                                                                                                  \
    /* edition 2, sections 0 to 3 */                                                                                                       \
    X(discipline)                                                                                                                          \
    X(tablesVersion)                                                                                                                       \
    X(localTablesVersion)                                                                                                                  \
    X(productionStatusOfProcessedData)                                                                                                     \
    X(marsClass)                                                                                                                           \
    X(generation)                                                                                                                          \
    X(gridDefinitionTemplateNumber)                                                                                                        \
    X(numberOfGridInReference)                                                                                                             \
    /* edition 2, section 4 */                                                                                                             \
    X(NV)                                                                                                                                  \
    X(productDefinitionTemplateNumber)                                                                                                     \
    X(parameterCategory)                                                                                                                   \
    X(parameterNumber)                                                                                                                     \
    X(backgroundProcess)                                                                                                                   \
    X(typeOfFirstFixedSurface)                                                                                                             \
    X(scaleFactorOfFirstFixedSurface)                                                                                                      \
    X(scaledValueOfFirstFixedSurface)                                                                                                      \
    X(typeOfSecondFixedSurface)                                                                                                            \
    X(scaleFactorOfSecondFixedSurface)                                                                                                     \
    X(scaledValueOfSecondFixedSurface)                                                                                                     \
    X(typeOfStatisticalProcessing)                                                                                                         \
    X(typeOfStatisticalProcessingPair) /* of two time ranges: first × 256 + second */                                                     \
    X(indicatorOfUnitForTimeRange)                                                                                                         \
    X(lengthOfTimeRange)                                                                                                                   \
    X(probabilityType)                                                                                                                     \
    X(scaleFactorOfLowerLimit)                                                                                                             \
    X(scaledValueOfLowerLimit)                                                                                                             \
    X(constituentType)                                                                                                                     \
    X(aerosolType)                                                                                                                         \
    X(sourceSinkChemicalPhysicalProcess)                                                                                                   \
    X(typeOfDistributionFunction)                                                                                                          \
    X(modeNumber)                                                                                                                          \
    X(typeOfSizeInterval)                                                                                                                  \
    X(scaleFactorOfFirstSize)                                                                                                              \
    X(scaledValueOfFirstSize)                                                                                                              \
    X(scaleFactorOfSecondSize)                                                                                                             \
    X(scaledValueOfSecondSize)                                                                                                             \
    X(typeOfWavelengthInterval)                                                                                                            \
    X(scaleFactorOfFirstWavelength)                                                                                                        \
    X(scaledValueOfFirstWavelength)                                                                                                        \
    X(scaleFactorOfSecondWavelength)                                                                                                       \
    X(scaledValueOfSecondWavelength)                                                                                                       \
    X(typeOfWavePeriodInterval)                                                                                                            \
    X(scaleFactorOfLowerWavePeriodLimit)                                                                                                   \
    X(scaledValueOfLowerWavePeriodLimit)                                                                                                   \
    X(scaleFactorOfUpperWavePeriodLimit)                                                                                                   \
    X(scaledValueOfUpperWavePeriodLimit)                                                                                                   \
    X(satelliteSeries)                                                                                                                     \
    X(satelliteNumber)                                                                                                                     \
    X(instrumentType)                                                                                                                      \
    X(scaledValueOfCentralWaveNumber)                                                                                                      \
    X(typeOfRelationToReferenceDataset)                                                                                                    \
    X(randomFieldNumber)                                                                                                                   \
    X(inputProcessIdentifier)                                                                                                              \
    X(inputOriginatingCentre)                                                                                                              \
    X(typeOfPostProcessing)                                                                                                                \
    /* edition 2, section 4: no condition names them */                                                                                    \
    X(numberOfForecastsInEnsemble)                                                                                                         \
    X(waveDirectionNumber)                                                                                                                 \
    X(waveFrequencyNumber)                                                                                                                 \
    /* edition 2, counts of lists in section 4 */                                                                                          \
    X(numberOfTimeRanges)                                                                                                                  \
    X(numberOfAdditionalParametersForReferencePeriod)                                                                                      \
    X(numberOfReferencePeriodTimeRanges)                                                                                                   \
    X(numberOfContributingSpectralBands)                                                                                                   \
    X(numberOfCategories)                                                                                                                  \
    X(numberOfPartitions)                                                                                                                  \
    X(numberOfDistributionFunctionParameters)                                                                                              \
    X(numberOfForecastsInTheCluster)                                                                                                       \
    X(numberOfForecastsUsedInLocalTime)                                                                                                    \
    X(numberOfSpatialVicinityValues)                                                                                                       \
    X(numberOfUsedTileAttributesForTileAttributeCombination)                                                                               \
    X(numberOfAdditionalArgumentsForVerification)                                                                                          \
    X(numberOfVerificationPeriodTimeRanges)                                                                                                \
    X(numberOfWaveDirections)                                                                                                              \
    X(numberOfWaveFrequencies)                                                                                                             \
    X(numberOfWaveDirectionSequenceParameters)                                                                                             \
    X(numberOfWaveFrequencySequenceParameters)                                                                                             \
    /* computed */                                                                                                                         \
    X(is_chemical)                                                                                                                         \
    X(is_chemical_distfn)                                                                                                                  \
    X(is_chemical_srcsink)                                                                                                                 \
    X(is_aerosol)                                                                                                                          \
    X(is_aerosol_optical)                                                                                                                  \
    X(pressureUnits) /* 0: hPa, 1: Pa */                                                                                                   \
    X(genVertHeightCoords)                                                                                                                 \
    X(always) /* 1 */

enum sq_grib_key {
    SQ_GRIB_KEY_NONE,
#define SQ_GRIB_KEY(name) SQ_GRIB_KEY_##name,
    SQ_GRIB_KEYS(SQ_GRIB_KEY)
#undef SQ_GRIB_KEY
        SQ_GRIB_KEY_COUNT,
};

/* How ecCodes (and so its conditions) spells a value that is all ones where a key may be missing. */
enum { SQ_GRIB_KEY_MISSING = 2147483647 };

struct sq_grib_keys {
    int64_t value[SQ_GRIB_KEY_COUNT];
    bool defined[SQ_GRIB_KEY_COUNT];
};

/* All keys of a product. Never fails: what the bytes do not have is not defined. */
void sq_grib_keys_read(const struct sq_grib_raw *raw, struct sq_grib_keys *ret);

#endif
