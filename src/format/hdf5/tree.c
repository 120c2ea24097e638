/*
 * See tree.h. Groups are walked depth first. A group that several links lead to is listed by each of their paths; one that holds itself is not
 * entered again. Links of a group are read once, for the walk and for the soft links that lead through it.
 */
#include "format/hdf5/tree.h"
#include <stdio.h>
#include <string.h>

/* HDF5's own limit of soft links that lead to soft links is 16, too. */
enum { GROUP_DEPTH_LIMIT = 256, SOFT_LINK_LIMIT = 16 };

/* A group on the way from the root to where the walk is. */
struct ancestor {
    const struct ancestor *above;
    uint64_t address;
    size_t group; /* its number */
    unsigned depth;
};

struct walk {
    struct sq_hdf5_tree *tree;
    struct sq_hdf5_reader *r;   /* the tree's */
    struct sq_hdf5_table links; /* groups' links, by address */
};

static const char *file_name(const struct walk *w)
{
    return sq_source_name(w->r->file->source);
}

static int copy_text(struct sq_hdf5_reader *r, const char *text, size_t length, const char **ret, struct squall_error *err)
{
    char *copy;
    SQ_TRY(SQ_HDF5_ROOM(r, &copy, length + 1, err));
    memcpy(copy, text, length);
    *ret = copy;
    return 0;
}

static int add_problem(struct sq_hdf5_tree *t, const struct sq_text *line, struct squall_error *err)
{
    if (line->failed)
        return sq_error_memory(err, line->length);
    SQ_TRY(SQ_HDF5_GROW(&t->reader, t->problems, t->problem_capacity, t->problem_count, err));
    SQ_TRY(copy_text(&t->reader, sq_text_string(line), line->length, &t->problems[t->problem_count], err));
    t->problem_count++;
    return 0;
}

/* Does the walk end with this status, or only what it was about? */
static bool is_fatal(const struct sq_hdf5_tree *t, int status)
{
    return (status != SQUALL_ECORRUPT && status != SQUALL_EUNSUPPORTED) || *t->kept.budget_bytes == 0;
}

int sq_hdf5_tree_leave_out(struct sq_hdf5_tree *tree, int status, const struct squall_error *reason, const char *what, const char *name,
                           struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    if (is_fatal(tree, status)) {
        if (err)
            *err = *reason;
        return status;
    }
    sq_text_printf(&line, "%s; ", reason->message);
    if (what) {
        sq_text_add_visible(&line, what);
        sq_text_add(&line, " of ");
    }
    sq_text_add_visible(&line, name[0] ? name : "/");
    sq_text_add(&line, " is left out");
    return add_problem(tree, &line, err);
}

/* For what is read in parts, each of which may be left out. */
struct part {
    struct sq_hdf5_tree *tree;
    const char *what, *name;
};

static int refuse_part(void *user, int status, const struct squall_error *reason, struct squall_error *err)
{
    const struct part *part = user;
    return sq_hdf5_tree_leave_out(part->tree, status, reason, part->what, part->name, err);
}

/* ---- datasets ---- */

static void put_bytes(const struct sq_hdf5_object *object, unsigned type, struct sq_hdf5_bytes *ret)
{
    const struct sq_hdf5_message *m = sq_hdf5_object_find(object, type);
    if (m)
        *ret = (struct sq_hdf5_bytes){m->bytes, m->size_bytes, m->address};
}

/* The type, or why there is none. */
static int put_type(struct walk *w, const struct sq_hdf5_object *object, struct sq_hdf5_dataset *d, struct squall_error *err)
{
    const struct sq_hdf5_message *m = sq_hdf5_object_find(object, SQ_HDF5_DATATYPE);
    struct squall_error reason = SQUALL_ERROR_INIT;
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    int status = sq_hdf5_type_parse(&w->tree->kept, m->bytes, m->size_bytes, m->address, &d->type, &reason);
    if (!status)
        status = sq_hdf5_type_numpy(d->type, &numpy, &reason);
    if (!status)
        return 0;
    if (!is_fatal(w->tree, status))
        return copy_text(&w->tree->kept, reason.message, strlen(reason.message), &d->unsupported, err);
    if (err)
        *err = reason;
    return status;
}

/* All that can be read of them. */
static int put_attributes(struct walk *w, const struct sq_hdf5_object *object, const char *name, struct sq_hdf5_attributes *ret,
                          struct squall_error *err)
{
    struct part part = {w->tree, "an attribute", name};
    const struct sq_hdf5_refusal refusal = {refuse_part, &part};
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = sq_hdf5_attributes_read(w->r, object, &refusal, ret, &reason);
    return status ? sq_hdf5_tree_leave_out(w->tree, status, &reason, "the list of attributes", name, err) : 0;
}

static int add_dataset(struct walk *w, const struct sq_hdf5_object *object, const char *name, size_t group, struct squall_error *err)
{
    struct sq_hdf5_tree *t = w->tree;
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_hdf5_dataset d = {.name = name, .group = group, .address = object->address};
    const struct sq_hdf5_message *space = sq_hdf5_object_find(object, SQ_HDF5_SPACE);
    int status = sq_hdf5_space_parse(&w->tree->kept, space->bytes, space->size_bytes, space->address, &d.space, &reason);
    if (status)
        return sq_hdf5_tree_leave_out(w->tree, status, &reason, NULL, name, err);
    SQ_TRY(put_type(w, object, &d, err));
    put_bytes(object, SQ_HDF5_LAYOUT, &d.layout);
    put_bytes(object, SQ_HDF5_FILL, &d.fill);
    put_bytes(object, SQ_HDF5_FILL_OLD, &d.fill_old);
    put_bytes(object, SQ_HDF5_FILTERS, &d.filters);
    put_bytes(object, SQ_HDF5_EXTERNAL, &d.external);
    SQ_TRY(put_attributes(w, object, name, &d.attributes, err));
    SQ_TRY(SQ_HDF5_GROW(w->r, t->datasets, t->dataset_capacity, t->dataset_count, err));
    t->datasets[t->dataset_count++] = d;
    return 0;
}

/* ---- links ---- */

/* The links of a group, read once. name: for problems. */
static int links_of(struct walk *w, const struct sq_hdf5_object *group, const char *name, struct sq_hdf5_links **ret,
                    struct squall_error *err)
{
    struct part part = {w->tree, "a member", name};
    const struct sq_hdf5_refusal refusal = {refuse_part, &part};
    struct sq_hdf5_links *links = sq_hdf5_table_get(&w->links, group->address);
    if (!links) {
        SQ_TRY(SQ_HDF5_ROOM(w->r, &links, 1, err));
        SQ_TRY(sq_hdf5_links_read(w->r, group, &refusal, links, err));
        SQ_TRY(sq_hdf5_table_put(&w->links, group->address, links, err));
    }
    *ret = links;
    return 0;
}

/* A member of the group whose header is at `group`; *ret: NULL where it has none of this name. */
static int find_member(struct walk *w, uint64_t group, const char *name, size_t length, const struct sq_hdf5_link **ret,
                       struct squall_error *err)
{
    struct sq_hdf5_links *links = sq_hdf5_table_get(&w->links, group);
    if (!links) {
        struct sq_hdf5_object object;
        SQ_TRY(sq_hdf5_object_read(w->r, group, &object, err));
        const char *const known = sq_hdf5_tree_path(w->tree, group);
        SQ_TRY(links_of(w, &object, known ? known : "a group", &links, err));
    }
    return sq_hdf5_links_find(w->r, links, name, length, ret, err);
}

/* From the group at *address along a path, soft links followed; *address becomes that of what it leads to. */
static int follow(struct walk *w, const char *path, unsigned depth, uint64_t *address, struct squall_error *err)
{
    uint64_t at = path[0] == '/' ? w->r->file->root : *address;
    for (const char *part = path; *part;) {
        const struct sq_hdf5_link *link;
        const char *const name = part;
        const size_t length = strcspn(part, "/");
        part += length + (part[length] == '/');
        SQ_TRY(sq_hdf5_spend(w->r, length + 1, err));
        if (length == 0 || (length == 1 && name[0] == '.'))
            continue;
        SQ_TRY(find_member(w, at, name, length, &link, err));
        if (!link || link->elsewhere || (link->path && depth >= SOFT_LINK_LIMIT)) {
            SQ_CLEANUP_TEXT struct sq_text visible = SQ_TEXT_INIT;
            sq_text_add_visible(&visible, path);
            return sq_error(err, SQUALL_ECORRUPT, "%s: a soft link to %.200s, where nothing is", file_name(w), sq_text_string(&visible));
        }
        if (link->path)
            SQ_TRY(follow(w, link->path, depth + 1, &at, err));
        else
            at = link->address;
    }
    *address = at;
    return 0;
}

/* The object that a link in this group leads to. */
static int read_target(struct walk *w, const struct sq_hdf5_link *link, const struct ancestor *in, struct sq_hdf5_object *ret,
                       struct squall_error *err)
{
    uint64_t address = link->path ? in->address : link->address;
    if (link->elsewhere)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: %s", file_name(w), link->elsewhere);
    if (link->path)
        SQ_TRY(follow(w, link->path, 0, &address, err));
    for (const struct ancestor *a = in; a; a = a->above)
        if (a->address == address)
            return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a link back to a group that it is in", file_name(w));
    if (in->depth >= GROUP_DEPTH_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: groups nested more than %d deep", file_name(w), GROUP_DEPTH_LIMIT);
    return sq_hdf5_object_read(w->r, address, ret, err);
}

/* ---- groups ---- */

static int walk_group(struct walk *w, const struct sq_hdf5_object *object, const char *path, const struct ancestor *above,
                      struct squall_error *err);

/* "/group" and "t2m": "/group/t2m" */
static int join(struct walk *w, const char *path, const char *name, const char **ret, struct squall_error *err)
{
    const char *folder = path[1] ? path : "";
    const size_t size_bytes = strlen(folder) + strlen(name) + 2;
    char *joined;
    SQ_TRY(SQ_HDF5_ROOM(&w->tree->kept, &joined, size_bytes, err));
    snprintf(joined, size_bytes, "%s/%s", folder, name);
    *ret = joined;
    return 0;
}

static int visit_link(struct walk *w, const struct sq_hdf5_link *link, const char *group_path, const struct ancestor *in,
                      struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_hdf5_object object;
    const char *path;
    SQ_TRY(join(w, group_path, link->name, &path, err));
    int status = read_target(w, link, in, &object, &reason);
    if (status)
        return sq_hdf5_tree_leave_out(w->tree, status, &reason, NULL, path + 1, err);
    if (!sq_hdf5_tree_path(w->tree, object.address))
        SQ_TRY(sq_hdf5_table_put(&w->tree->paths, object.address, (char *)(uintptr_t)path, err));
    if (sq_hdf5_object_is_group(&object))
        return walk_group(w, &object, path, in, err);
    if (!sq_hdf5_object_find(&object, SQ_HDF5_DATATYPE))
        status = SQ_HDF5_DAMAGED(w->r->file, object.address, &reason, "neither a group nor a dataset");
    if (status)
        return sq_hdf5_tree_leave_out(w->tree, status, &reason, NULL, path + 1, err);
    if (sq_hdf5_object_find(&object, SQ_HDF5_SPACE)) /* else a type that others refer to */
        return add_dataset(w, &object, path + 1, in->group, err);
    return 0;
}

static int walk_group(struct walk *w, const struct sq_hdf5_object *object, const char *path, const struct ancestor *above,
                      struct squall_error *err)
{
    struct sq_hdf5_tree *t = w->tree;
    const struct ancestor here = {above, object->address, t->group_count, above ? above->depth + 1 : 0};
    struct sq_hdf5_group group = {.name = path + 1, .parent = above ? above->group : 0, .address = object->address};
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_hdf5_links *links;
    SQ_TRY(put_attributes(w, object, path + 1, &group.attributes, err));
    SQ_TRY(SQ_HDF5_GROW(w->r, t->groups, t->group_capacity, t->group_count, err));
    t->groups[t->group_count++] = group;
    int status = links_of(w, object, path + 1, &links, &reason);
    if (status)
        return sq_hdf5_tree_leave_out(w->tree, status, &reason, "the list of members", path + 1, err);
    for (size_t i = 0; i < links->count; i++)
        SQ_TRY(visit_link(w, &links->list[i], path, &here, err));
    return 0;
}

/* What is wrong with the file as a whole. */
static int note_state(struct walk *w, struct squall_error *err)
{
    const struct sq_hdf5_file *f = w->r->file;
    SQ_CLEANUP_TEXT struct sq_text line = SQ_TEXT_INIT;
    if (f->marked_open)
        sq_text_printf(&line, "%s: marked as open for writing: its writer is at work on it, or ended without closing it", file_name(w));
    if (line.length)
        SQ_TRY(add_problem(w->tree, &line, err));
    sq_text_clear(&line);
    if (f->stated_end > f->end)
        sq_text_printf(&line, "%s: cut off: it has %llu bytes of %llu", file_name(w), (unsigned long long)f->base + f->end,
                       (unsigned long long)f->base + f->stated_end);
    return line.length ? add_problem(w->tree, &line, err) : 0;
}

int sq_hdf5_tree_read(const struct sq_hdf5_file *file, struct sq_hdf5_tree *ret, struct squall_error *err)
{
    struct sq_hdf5_tree tree = {0};
    struct walk w = {.tree = &tree, .r = &tree.reader};
    struct sq_hdf5_object root;
    static const char *const ROOT = "/";
    int status = sq_hdf5_reader_init(&tree.reader, file, err);
    if (!status)
        status = sq_hdf5_reader_init(&tree.kept, file, err);
    tree.reader.budget_bytes = tree.kept.budget_bytes;
    if (!status)
        status = note_state(&w, err);
    if (!status)
        status = sq_hdf5_object_read(&tree.reader, file->root, &root, err);
    if (!status)
        status = sq_hdf5_table_put(&tree.paths, file->root, (char *)(uintptr_t)ROOT, err);
    if (!status)
        status = walk_group(&w, &root, ROOT, NULL, err);
    sq_hdf5_table_done(&w.links);
    if (status)
        sq_hdf5_tree_done(&tree);
    else
        *ret = tree;
    return status;
}

void sq_hdf5_tree_done(struct sq_hdf5_tree *tree)
{
    sq_hdf5_table_done(&tree->paths);
    sq_hdf5_reader_done(&tree->reader);
    sq_hdf5_reader_done(&tree->kept);
}

void sq_hdf5_tree_walk_done(struct sq_hdf5_tree *tree)
{
    sq_hdf5_reader_done(&tree->reader);
    *tree = (struct sq_hdf5_tree){.kept = tree->kept, .paths = tree->paths};
}

const char *sq_hdf5_tree_path(const struct sq_hdf5_tree *tree, uint64_t address)
{
    return sq_hdf5_table_get(&tree->paths, address);
}
