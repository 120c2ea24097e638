/*
 * See lock.h. A file appears whole, by a link that fails where there is one already: that is so on every file system, NFS too. Looking at a
 * stale lock and replacing it are two steps; the file "guard" is held between them, so that two takers cannot both find it stale. It need not
 * hold between machines, since only processes of one machine can know that it is stale.
 *
 * A part makes its own lock and then looks at "lock"; the whole makes "lock" and then looks at those of parts. So of the two at least one
 * sees the other.
 */
#include "convert/lock.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "engine/context.h"
#include "io/atomic_file.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct sq_lock {
    char *path;
};

enum {
    LOCK_LIMIT_BYTES = 4096,
    TRIES = 100,
    PATIENCE_S = 600,   /* with a part on another machine, of which nobody here can know whether it lives */
    FIRST_PAUSE_MS = 4, /* between two looks; then each an eighth longer, so that little is overslept of what was waited */
    LONGEST_PAUSE_MS = 500
};

struct holder {
    struct sq_process process;
    struct sq_part part; /* that took it; {0}: the whole */
    char since[32];
};

/* What lies at the path of a lock. */
struct claim {
    bool is_held; /* false: nothing is there, or a dead process's */
    bool is_stale;
    enum sq_process_state state;
    struct holder holder;
};

/* ---- what a lock says ------------------------------------------------------------------------------------------------------------- */

static int write_holder(const struct holder *h, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (sq_json_set_string(v, "host", h->process.host) || sq_json_set_string(v, "boot", h->process.boot) ||
        sq_json_set_string(v, "pid_namespace", h->process.pid_namespace) || sq_json_set_int(v, "pid", h->process.pid) ||
        sq_json_set(v, "start_ticks", sq_json_new_uint(h->process.start_ticks)) || sq_json_set_string(v, "since", h->since) ||
        (h->part.count && (sq_json_set_int(v, "part", h->part.number) || sq_json_set_int(v, "parts", h->part.count))))
        return sq_error_memory(err, sizeof *h);
    SQ_TRY(sq_json_write(v, true, out, err));
    sq_text_add(out, "\n");
    return out->failed ? sq_error_memory(err, out->length) : 0;
}

static bool copy_text(const struct sq_json *v, char *dst, size_t capacity)
{
    const char *text = sq_json_string(v);
    if (!text || strlen(text) >= capacity)
        return false;
    memcpy(dst, text, strlen(text) + 1);
    return true;
}

static bool read_part(const struct sq_json *v, struct sq_part *ret)
{
    uint64_t number, count;
    if (!sq_json_get(v, "part"))
        return true;
    if (!sq_json_uint(sq_json_get(v, "part"), &number) || !sq_json_uint(sq_json_get(v, "parts"), &count) || count > UINT32_MAX ||
        number < 1 || number > count)
        return false;
    *ret = (struct sq_part){(unsigned)number, (unsigned)count};
    return true;
}

static bool read_holder(const char *text, size_t length, struct holder *ret)
{
    struct sq_json *parsed = NULL;
    if (sq_json_parse(text, length, &parsed, NULL))
        return false;
    SQ_CLEANUP_JSON struct sq_json *v = parsed;
    struct holder h = {0};
    if (!copy_text(sq_json_get(v, "host"), h.process.host, sizeof h.process.host) ||
        !copy_text(sq_json_get(v, "boot"), h.process.boot, sizeof h.process.boot) ||
        !copy_text(sq_json_get(v, "pid_namespace"), h.process.pid_namespace, sizeof h.process.pid_namespace) ||
        !copy_text(sq_json_get(v, "since"), h.since, sizeof h.since) || !sq_json_int(sq_json_get(v, "pid"), &h.process.pid) ||
        !sq_json_uint(sq_json_get(v, "start_ticks"), &h.process.start_ticks) || !read_part(v, &h.part))
        return false;
    *ret = h;
    return true;
}

static int look_at(const char *path, const struct sq_process *self, struct claim *ret, struct squall_error *err)
{
    enum sq_file_kind kind;
    SQ_CLEANUP_FREE char *text = NULL;
    size_t length = 0;
    struct squall_error failure = SQUALL_ERROR_INIT;
    *ret = (struct claim){0};
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return 0;
    int status = sq_file_read_all(path, LOCK_LIMIT_BYTES, &text, &length, &failure);
    if (status == SQUALL_ENOTFOUND) /* released just now */
        return 0;
    if (status == SQUALL_EUNSUPPORTED || status == SQUALL_ECORRUPT) /* no file, or one too long */
        return sq_error(err, SQUALL_EREFUSED, "%s; that is no lock of squall's: if no other run works here, remove it", failure.message);
    if (status)
        return sq_error(err, status, "%s", failure.message);
    if (!read_holder(text, length, &ret->holder))
        return sq_error(err, SQUALL_EREFUSED, "%s is there but does not say whose lock it is; if no other run works here, remove it", path);
    ret->state = sq_process_look(&ret->holder.process, self);
    ret->is_stale = ret->state == SQ_PROCESS_DEAD;
    ret->is_held = !ret->is_stale;
    return 0;
}

static int refuse(const char *path, const struct claim *c, struct squall_error *err)
{
    const struct holder *h = &c->holder;
    char part[48] = "";
    if (h->part.count)
        snprintf(part, sizeof part, "part %u of %u, ", h->part.number, h->part.count);
    if (c->state == SQ_PROCESS_ELSEWHERE)
        return sq_error(err, SQUALL_EREFUSED,
                        "in use by %sprocess %lld on host %s since %s; if that run is dead, remove %s and start again", part,
                        (long long)h->process.pid, h->process.host, h->since, path);
    return sq_error(err, SQUALL_EREFUSED, "in use by %sprocess %lld on this host (%s) since %s; wait for it to end", part,
                    (long long)h->process.pid, h->process.host, h->since);
}

/* ---- looking ---------------------------------------------------------------------------------------------------------------------- */

/* "lock-part-2-of-5", and nothing else that begins so */
static bool is_part_lock(const char *name, struct sq_part *ret)
{
    char again[sizeof "lock-part-4294967295-of-4294967295"];
    if (sscanf(name, "lock-part-%9u-of-%9u", &ret->number, &ret->count) != 2)
        return false;
    snprintf(again, sizeof again, "lock-part-%u-of-%u", ret->number, ret->count);
    return !strcmp(name, again);
}

static char *path_of(const char *folder, struct sq_part part)
{
    return part.count ? sq_format("%s/lock-part-%u-of-%u", folder, part.number, part.count) : sq_path_join(folder, "lock");
}

typedef int part_visitor(void *user, const char *path, struct sq_part part, const struct claim *claim, struct squall_error *err);

/* Each part's lock that lies there. */
static int each_part(const char *folder, const struct sq_process *self, part_visitor *visit, void *user, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list_if_there(folder, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        struct sq_part part;
        struct claim claim;
        if (!is_part_lock(names[i], &part))
            continue;
        SQ_CLEANUP_FREE char *path = sq_path_join(folder, names[i]);
        status = path ? look_at(path, self, &claim, err) : sq_error_memory(err, strlen(folder));
        if (!status)
            status = visit(user, path, part, &claim, err);
    }
    sq_names_free(names, count);
    return status;
}

/* user: the part that asks. Parts of one count work beside each other. */
static int refuse_beside(void *user, const char *path, struct sq_part part, const struct claim *claim, struct squall_error *err)
{
    const struct sq_part *own = user;
    const bool beside = own->count == part.count && own->number != part.number;
    return beside || !claim->is_held ? 0 : refuse(path, claim, err);
}

/* The same of one that holds its own lock. */
static int refuse_others(void *user, const char *path, struct sq_part part, const struct claim *claim, struct squall_error *err)
{
    const struct sq_part *own = user;
    return own->count == part.count || !claim->is_held ? 0 : refuse(path, claim, err);
}

static int remove_stale(void *user, const char *path, struct sq_part part, const struct claim *claim, struct squall_error *err)
{
    (void)user;
    (void)part;
    return claim->is_stale ? sq_file_remove(path, err) : 0;
}

/* Is "lock" that of a part which this one can wait for? */
static bool is_brief(const struct claim *claim, struct sq_part part)
{
    return part.count && claim->holder.part.count == part.count && claim->holder.part.number != part.number;
}

static int look(const char *folder, struct sq_part part, const struct sq_process *self, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(folder, "lock");
    struct claim claim;
    if (!path)
        return sq_error_memory(err, strlen(folder));
    SQ_TRY(look_at(path, self, &claim, err));
    if (claim.is_held && !is_brief(&claim, part))
        return refuse(path, &claim, err);
    return each_part(folder, self, refuse_beside, &part, err);
}

/* Is there time to try again? By looking again and again, since no file system tells of a file that goes on another machine. */
static bool pause(const struct sq_patience *patience, long *pause_ms)
{
    const double left_s = patience ? patience->until_s - sq_clock_s() : 0;
    if (left_s <= 0)
        return false;
    const long ms = left_s * 1000 < (double)*pause_ms ? (long)(left_s * 1000) + 1 : *pause_ms;
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
    const long longer_ms = *pause_ms + (*pause_ms + 7) / 8;
    *pause_ms = longer_ms < LONGEST_PAUSE_MS ? longer_ms : LONGEST_PAUSE_MS;
    return true;
}

int sq_lock_look(const char *records_folder, struct sq_part part, const struct sq_patience *patience, struct squall_error *err)
{
    struct sq_process self;
    long pause_ms = FIRST_PAUSE_MS;
    SQ_TRY(sq_process_self(&self, err));
    int status = look(records_folder, part, &self, err);
    while (status == SQUALL_EREFUSED && pause(patience, &pause_ms))
        status = sq_cancelled(patience->ctx) ? sq_error(err, SQUALL_ECANCELLED, "stopped") : look(records_folder, part, &self, err);
    return status;
}

static int count_others(void *user, const char *path, struct sq_part part, const struct claim *claim, struct squall_error *err)
{
    (void)path;
    (void)part;
    (void)err;
    *(unsigned *)user += claim->is_held;
    return 0;
}

int sq_lock_alone(const char *records_folder, struct sq_part part, bool *ret, struct squall_error *err)
{
    struct sq_process self;
    unsigned held = 0;
    SQ_TRY(sq_process_self(&self, err));
    SQ_TRY(each_part(records_folder, &self, count_others, &held, err));
    *ret = held == (part.count ? 1 : 0);
    return 0;
}

/* ---- taking ----------------------------------------------------------------------------------------------------------------------- */

static void time_now(char *ret, size_t capacity)
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(ret, capacity, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static int new_lock(char *path, struct sq_lock **ret, struct squall_error *err)
{
    struct sq_lock *lock = path ? sq_alloc_zero(1, sizeof *lock) : NULL;
    if (!lock) {
        sq_free(path);
        return sq_error_memory(err, sizeof *lock);
    }
    lock->path = path;
    *ret = lock;
    return 0;
}

/* *ret_there: what is there instead, where something is. The guard is held by the caller. */
static int make(const char *path, struct sq_part part, const struct sq_process *self, struct claim *ret_there, struct squall_error *err)
{
    struct holder me = {.process = *self, .part = part};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    bool made = false;
    time_now(me.since, sizeof me.since);
    SQ_TRY(write_holder(&me, &text, err));
    for (int tries = 0; tries < TRIES && !made; tries++) { /* one that has just been made may have gone again */
        SQ_TRY(look_at(path, self, ret_there, err));
        if (ret_there->is_held)
            return 0;
        if (ret_there->is_stale)
            SQ_TRY(sq_file_remove(path, err));
        SQ_TRY(sq_atomic_create(path, text.data, text.length, &made, err));
    }
    return made ? 0
                : sq_error(err, SQUALL_EREFUSED,
                           "%s: other runs take and release it all the time, or it is a link that leads nowhere; start again, and if no "
                           "other run works here, remove it",
                           path);
}

static int take_whole(const char *folder, const char *path, const struct sq_process *self, struct squall_error *err)
{
    struct sq_part whole = {0};
    struct claim there;
    SQ_TRY(make(path, whole, self, &there, err));
    if (there.is_held)
        return refuse(path, &there, err);
    int status = each_part(folder, self, refuse_others, &whole, err);
    if (!status)
        status = each_part(folder, self, remove_stale, NULL, err);
    if (status) {
        int stays = sq_file_remove(path, NULL);
        (void)stays; /* as when a lock is released */
    }
    return status;
}

static int take_part(const char *folder, const char *path, struct sq_part part, const struct sq_process *self, struct squall_error *err)
{
    struct claim there;
    SQ_TRY(look(folder, part, self, err));
    SQ_TRY(make(path, part, self, &there, err));
    return there.is_held ? refuse(path, &there, err) : 0;
}

/* {0}: the whole's. */
static int take(const char *folder, struct sq_part part, struct sq_lock **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *guard = sq_path_join(folder, "guard");
    struct sq_process self;
    struct sq_lock *lock = NULL;
    int held = -1;
    if (!guard)
        return sq_error_memory(err, strlen(folder));
    SQ_TRY(sq_process_self(&self, err));
    SQ_TRY(new_lock(path_of(folder, part), &lock, err));
    int status = sq_file_hold(guard, &held, err);
    if (!status)
        status = part.count ? take_part(folder, lock->path, part, &self, err) : take_whole(folder, lock->path, &self, err);
    sq_file_close(held);
    if (status) {
        sq_free(lock->path);
        sq_free(lock);
        return status;
    }
    *ret = lock;
    return 0;
}

int sq_lock_take(const char *records_folder, struct sq_part part, const struct sq_patience *patience, struct sq_lock **ret,
                 struct squall_error *err)
{
    long pause_ms = FIRST_PAUSE_MS;
    int status = take(records_folder, part, ret, err);
    while (status == SQUALL_EREFUSED && pause(patience, &pause_ms))
        status = sq_cancelled(patience->ctx) ? sq_error(err, SQUALL_ECANCELLED, "stopped") : take(records_folder, part, ret, err);
    return status;
}

/* ---- waiting ---------------------------------------------------------------------------------------------------------------------- */

static int try_brief(const char *folder, const char *path, struct sq_part part, const struct sq_process *self, struct claim *ret_there,
                     struct squall_error *err)
{
    SQ_CLEANUP_FREE char *guard = sq_path_join(folder, "guard");
    int held = -1;
    if (!guard)
        return sq_error_memory(err, strlen(folder));
    SQ_TRY(sq_file_hold(guard, &held, err));
    int status = make(path, part, self, ret_there, err);
    sq_file_close(held);
    return status;
}

static bool same_holder(const struct holder *a, const struct holder *b)
{
    return a->process.pid == b->process.pid && a->process.start_ticks == b->process.start_ticks &&
           !strcmp(a->process.host, b->process.host) && !strcmp(a->since, b->since);
}

/* One that this part could not remove when it released it. */
static bool is_own(const struct claim *claim, struct sq_part part, const struct sq_process *self)
{
    const struct holder *h = &claim->holder;
    return h->part.number == part.number && h->part.count == part.count && h->process.pid == self->pid &&
           h->process.start_ticks == self->start_ticks && claim->state != SQ_PROCESS_ELSEWHERE;
}

static int wait_for(const char *folder, const char *path, struct sq_part part, const struct sq_process *self, const squall_context *ctx,
                    struct squall_error *err)
{
    struct holder last = {0};
    double since_s = sq_clock_s();
    long pause_ms = FIRST_PAUSE_MS;
    const struct sq_patience endless = {ctx, INFINITY};
    for (;; (void)pause(&endless, &pause_ms)) {
        struct claim there;
        SQ_TRY(try_brief(folder, path, part, self, &there, err));
        if (!there.is_held || is_own(&there, part, self))
            return 0;
        if (!is_brief(&there, part))
            return refuse(path, &there, err);
        if (!same_holder(&there.holder, &last)) {
            last = there.holder;
            since_s = sq_clock_s();
        }
        if (there.state == SQ_PROCESS_ELSEWHERE && sq_clock_s() - since_s > PATIENCE_S)
            return refuse(path, &there, err);
        if (sq_cancelled(ctx))
            return sq_error(err, SQUALL_ECANCELLED, "stopped");
    }
}

int sq_lock_wait(const char *records_folder, struct sq_part part, const squall_context *ctx, struct sq_lock **ret, struct squall_error *err)
{
    struct sq_process self;
    struct sq_lock *lock = NULL;
    SQ_TRY(sq_process_self(&self, err));
    SQ_TRY(new_lock(sq_path_join(records_folder, "lock"), &lock, err));
    int status = wait_for(records_folder, lock->path, part, &self, ctx, err);
    if (status) {
        sq_free(lock->path);
        sq_free(lock);
        return status;
    }
    status = each_part(records_folder, &self, refuse_others, &part, err);
    if (status) {
        sq_lock_release(lock);
        return status;
    }
    *ret = lock;
    return 0;
}

int sq_lock_moved(struct sq_lock *lock, const char *records_folder, struct squall_error *err)
{
    char *path = sq_path_join(records_folder, "lock");
    if (!path)
        return sq_error_memory(err, strlen(records_folder));
    sq_free(lock->path);
    lock->path = path;
    return 0;
}

void sq_lock_release(struct sq_lock *lock)
{
    if (!lock)
        return;
    int stays = sq_file_remove(lock->path, NULL); /* one that stays is taken over once this process has ended */
    (void)stays;
    sq_free(lock->path);
    sq_free(lock);
}
