"""pyproj in a process of its own: its PROJ and the one that ecCodes' wheel brings along do not get on in one process."""

import concurrent.futures
import functools
import json
import multiprocessing


@functools.cache
def _transformer(mapping):
    import pyproj

    greenwich = {"longitude_of_prime_meridian": 0.0}  # CF's default, which pyproj looks up by its name for 0.2 s
    crs = pyproj.CRS.from_cf(greenwich | json.loads(mapping))
    return pyproj.Transformer.from_crs(crs.source_crs, crs, always_xy=True)


def _project(mapping, longitudes, latitudes):
    return _transformer(mapping).transform(longitudes, latitudes)


def _epsg(mapping):
    import pyproj

    return pyproj.CRS.from_cf(mapping).to_epsg()


def _rotate(latitude, longitude, angle, radius, longitudes, latitudes):
    import pyproj

    degree = 'ANGLEUNIT["degree",0.0174532925199433]'
    parameters = {
        "Latitude of the southern pole (GRIB convention)": latitude,
        "Longitude of the southern pole (GRIB convention)": longitude,
        "Axis rotation (GRIB convention)": angle,
    }
    listed = ",".join(f'PARAMETER["{name}",{value},{degree}]' for name, value in parameters.items())
    crs = pyproj.CRS.from_wkt(
        f'GEOGCRS["rotated",BASEGEOGCRS["base",DATUM["sphere",ELLIPSOID["sphere",{radius},0]],PRIMEM["Greenwich",0,{degree}]],'
        f'DERIVINGCONVERSION["rotation",METHOD["Pole rotation (GRIB convention)"],{listed}],'
        f'CS[ellipsoidal,2],AXIS["latitude",north],AXIS["longitude",east],{degree}]'
    )
    return pyproj.Transformer.from_crs(crs.source_crs, crs, always_xy=True).transform(longitudes, latitudes)


class Projector:
    def __init__(self):
        self.pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def __call__(self, mapping, longitudes, latitudes):
        """x and y, in metres or degrees, of points on the mapping's own ellipsoid, by a CF grid mapping."""
        return self.pool.submit(_project, json.dumps(mapping), longitudes, latitudes).result()

    def rotate(self, *args):
        """Rotated longitudes and latitudes by PROJ's own reading of GRIB: south pole, angle, radius, points."""
        return self.pool.submit(_rotate, *args).result()

    def epsg(self, mapping):
        return self.pool.submit(_epsg, mapping).result()

    def close(self):
        self.pool.shutdown()
