/*
 * See lock.h. The file appears whole, by a link that fails where there is one already. Looking at a stale lock and replacing
 * it are two steps; the file "guard" is held between them, so that two takers cannot both find it stale.
 */
#include "convert/lock.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/atomic_file.h"
#include "sys/file.h"
#include "sys/process.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

struct sq_lock {
    char *path;
};

enum { LOCK_LIMIT_BYTES = 4096 };

struct holder {
    struct sq_process process;
    char since[32];
};

static int write_holder(const struct holder *h, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (sq_json_set_string(v, "host", h->process.host) || sq_json_set_string(v, "boot", h->process.boot) ||
        sq_json_set_int(v, "pid", h->process.pid) || sq_json_set(v, "start_ticks", sq_json_new_uint(h->process.start_ticks)) ||
        sq_json_set_string(v, "since", h->since))
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

static bool read_holder(const char *text, size_t length, struct holder *ret)
{
    struct sq_json *parsed = NULL;
    if (sq_json_parse(text, length, &parsed, NULL))
        return false;
    SQ_CLEANUP_JSON struct sq_json *v = parsed;
    struct holder h = {0};
    if (!copy_text(sq_json_get(v, "host"), h.process.host, sizeof h.process.host) ||
        !copy_text(sq_json_get(v, "boot"), h.process.boot, sizeof h.process.boot) ||
        !copy_text(sq_json_get(v, "since"), h.since, sizeof h.since) || !sq_json_int(sq_json_get(v, "pid"), &h.process.pid) ||
        !sq_json_uint(sq_json_get(v, "start_ticks"), &h.process.start_ticks))
        return false;
    *ret = h;
    return true;
}

static int refuse(const char *path, const struct holder *h, enum sq_process_state state, struct squall_error *err)
{
    if (state == SQ_PROCESS_ELSEWHERE)
        return sq_error(err, SQUALL_EREFUSED, "in use by process %lld on host %s since %s; if that run is dead, remove %s and start again",
                        (long long)h->process.pid, h->process.host, h->since, path);
    return sq_error(err, SQUALL_EREFUSED, "in use by process %lld on this host (%s) since %s; wait for it to end",
                    (long long)h->process.pid, h->process.host, h->since);
}

/* *ret_stale: a dead process's lock lies there. Refuses a living one's. */
static int look_at(const char *path, const struct sq_process *self, bool *ret_stale, struct squall_error *err)
{
    enum sq_file_kind kind;
    SQ_CLEANUP_FREE char *text = NULL;
    size_t length = 0;
    struct holder h;
    *ret_stale = false;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return 0;
    int status = sq_file_read_all(path, LOCK_LIMIT_BYTES, &text, &length, err);
    if (status == SQUALL_ENOTFOUND) /* released just now */
        return 0;
    SQ_TRY(status);
    if (!read_holder(text, length, &h))
        return sq_error(err, SQUALL_EREFUSED, "%s is there but does not say whose lock it is; if no other run works here, remove it", path);
    enum sq_process_state state = sq_process_look(&h.process, self);
    if (state != SQ_PROCESS_DEAD)
        return refuse(path, &h, state, err);
    *ret_stale = true;
    return 0;
}

int sq_lock_look(const char *records_folder, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(records_folder, "lock");
    struct sq_process self;
    bool stale;
    if (!path)
        return sq_error_memory(err, strlen(records_folder));
    SQ_TRY(sq_process_self(&self, err));
    return look_at(path, &self, &stale, err);
}

static void time_now(char *ret, size_t capacity)
{
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(ret, capacity, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* The guard is held by the caller. */
static int take_held(const char *path, struct squall_error *err)
{
    struct holder me = {0};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    bool stale, made = false;
    SQ_TRY(sq_process_self(&me.process, err));
    time_now(me.since, sizeof me.since);
    SQ_TRY(write_holder(&me, &text, err));
    SQ_TRY(look_at(path, &me.process, &stale, err));
    if (stale)
        SQ_TRY(sq_file_remove(path, err));
    SQ_TRY(sq_atomic_create(path, text.data, text.length, &made, err));
    if (made)
        return 0;
    SQ_TRY(look_at(path, &me.process, &stale, err));
    return sq_error(err, SQUALL_EREFUSED, "another run took %s at this moment", path);
}

int sq_lock_take(const char *records_folder, struct sq_lock **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *guard = sq_path_join(records_folder, "guard");
    struct sq_lock *lock = sq_alloc_zero(1, sizeof *lock);
    if (!guard || !lock || !(lock->path = sq_path_join(records_folder, "lock"))) {
        sq_free(lock);
        return sq_error_memory(err, strlen(records_folder));
    }
    int held = -1;
    int status = sq_file_hold(guard, &held, err);
    if (!status)
        status = take_held(lock->path, err);
    sq_file_close(held);
    if (status) {
        sq_free(lock->path);
        sq_free(lock);
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
