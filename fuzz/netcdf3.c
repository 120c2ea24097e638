/*
 * Headers of NetCDF-3 files. What is read keeps to its promises (netcdf3.h): variables that can be read lie behind the header, begin within the
 * file and share no byte; attributes become JSON. Whatever the bytes are: an error with words, or these promises.
 */
#include "format/netcdf3/netcdf3.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_attributes(const struct sq_netcdf3_attributes *attributes)
{
    struct sq_json *values = NULL, *types = NULL;
    require(!sq_netcdf3_attributes_json(attributes, &values, NULL) && !sq_netcdf3_attributes_types(attributes, &types, NULL));
    require(sq_json_count(values) <= attributes->count && sq_json_count(types) <= sq_json_count(values));
    sq_json_free(values);
    sq_json_free(types);
}

static bool apart(const struct sq_netcdf3_variable *a, const struct sq_netcdf3_variable *b)
{
    return a->begin + a->row_bytes <= b->begin || b->begin + b->row_bytes <= a->begin;
}

static void check_variable(const struct sq_netcdf3 *f, size_t i)
{
    const struct sq_netcdf3_variable *v = &f->variables[i];
    require(v->name[0] && sq_netcdf3_type_row(f->version, v->type));
    check_attributes(&v->attributes);
    for (unsigned d = 0; d < v->rank; d++)
        require(v->dims[d][0] && v->shape[d] <= INT64_MAX);
    if (v->unsupported || v->row_bytes == 0)
        return;
    require(v->begin >= f->header_bytes);
    require((v->is_record && f->record_count == 0) || v->begin < sq_source_size(f->source));
    require(!v->is_record || v->row_bytes <= f->record_bytes);
    for (size_t k = 0; k < i && k < 64; k++) {
        const struct sq_netcdf3_variable *other = &f->variables[k];
        require(other->unsupported || other->row_bytes == 0 || apart(v, other));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sq_source *source = NULL;
    struct sq_netcdf3 *file = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    require(!sq_source_open_memory(data, size, "fuzz.nc", &source, NULL));
    if (sq_netcdf3_open(source, &file, &err)) {
        require(err.message[0]);
        return 0;
    }
    check_attributes(&file->attributes);
    for (size_t i = 0; i < file->variable_count; i++)
        check_variable(file, i);
    sq_netcdf3_close(file);
    return 0;
}
