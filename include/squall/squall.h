/* All of squall's public interface. */
#ifndef SQUALL_SQUALL_H
#define SQUALL_SQUALL_H

#include "squall/array.h"
#include "squall/context.h"
#include "squall/convert.h"
#include "squall/dataset.h"
#include "squall/date.h"
#include "squall/error.h"
#include "squall/grib.h"
#include "squall/handles.h"
#include "squall/many.h"
#include "squall/memory.h"
#include "squall/netcdf.h"
#include "squall/speed.h"
#include "squall/store.h"
#include "squall/version.h"

#endif
