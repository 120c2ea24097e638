/* Journals and what is read back from them, sets of slabs, and the lock. */
#include "support/folder.h"

#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/journal.h"
#include "convert/lock.h"
#include "sys/process.h"
#include <sys/wait.h>
#include <unistd.h>

/* ---- sets ------------------------------------------------------------------------------------------------------------------------ */

static struct sq_ranges set_of(const char *text)
{
    struct sq_ranges set = {0};
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_ranges_parse(text, &set, &err))
        fail_msg("%s", err.message);
    return set;
}

static void a_set_reads_as_it_was_written(void **state)
{
    (void)state;
    const uint64_t values[] = {0, 1, 2, 2, 5, 7, 8};
    struct sq_ranges set = {0};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(sq_ranges_add(&set, values[i], NULL), 0);
    sq_ranges_write(&set, &text);
    assert_string_equal(sq_text_string(&text), "0-2,5,7-8");
    struct sq_ranges back = set_of(text.data);
    assert_int_equal(back.count, 3);
    assert_int_equal(sq_ranges_lacking(&set, &back, NULL), 0);
    assert_int_equal(sq_ranges_lacking(&back, &set, NULL), 0);
    sq_ranges_done(&set);
    sq_ranges_done(&back);
}

static void text_that_is_no_set_is_refused(void **state)
{
    (void)state;
    const char *const wrong[] = {"a", "1,", ",1", "3-1", "3-3", "1-", "-1", "1,1", "1,2", "5,3", "1;3", "99999999999999999999999"};
    struct sq_ranges set;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sq_ranges_parse(wrong[i], &set, NULL), SQUALL_ECORRUPT);
}

/* Against sets of bits, which are too simple to be wrong. */
static void lacking_counts_like_bits(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 2000; round++) {
        struct sq_ranges sets[3] = {0};
        bool bits[3][40] = {0};
        uint64_t expected = 0;
        for (int s = 0; s < 3; s++)
            for (uint64_t v = 0; v < 40; v++)
                if ((bits[s][v] = rand() % 3 > 0))
                    assert_int_equal(sq_ranges_add(&sets[s], v, NULL), 0);
        for (int v = 0; v < 40; v++)
            expected += bits[0][v] && !bits[1][v] && !bits[2][v];
        assert_int_equal(sq_ranges_lacking(&sets[0], &sets[1], &sets[2]), expected);
        for (int s = 0; s < 3; s++)
            sq_ranges_done(&sets[s]);
    }
}

/* ---- journals -------------------------------------------------------------------------------------------------------------------- */

/* A unit of one array with two chunks, the second not stored. */
static void add_unit(struct sq_journal *journal, uint64_t number, uint64_t size)
{
    struct sq_range range = {0, 11};
    struct sq_record_chunk chunks[] = {{size, 0xfeedbeef}, {0, 0}};
    struct sq_record_file file = {"a \"b\".grib", 12345, -7};
    struct sq_record_array array = {.name = "t2m", .stored = {&range, 1, 0}, .chunks = chunks, .chunk_count = 2};
    uint32_t counts[] = {12};
    const struct sq_record_unit unit = {.unit = number,
                                        .valid = true,
                                        .files = &file,
                                        .file_count = 1,
                                        .arrays = &array,
                                        .array_count = 1,
                                        .field_counts = counts,
                                        .init_count = 1};
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_journal_add_unit(journal, &unit, &err))
        fail_msg("%s", err.message);
}

static struct sq_journal *journal_in(const char *folder, unsigned epoch)
{
    struct sq_journal *journal;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_journal_new(folder, (struct sq_record_source){epoch, 0}, "squall convert in out", &journal, &err))
        fail_msg("%s", err.message);
    return journal;
}

static struct sq_records loaded(const char *folder)
{
    struct sq_records records;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_records_load(folder, &records, &err))
        fail_msg("%s", err.message);
    return records;
}

static void a_record_reads_as_it_was_written(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1);
    add_unit(journal, 3, 100);
    sq_journal_close(journal);
    struct sq_records records = loaded(*state);
    const struct sq_record_unit *unit = sq_records_unit(&records, 3);
    assert_non_null(unit);
    assert_null(sq_records_unit(&records, 2));
    assert_true(unit->valid);
    assert_int_equal(unit->field_counts[0], 12);
    assert_true(sq_record_has_file(unit, &(struct sq_record_file){"a \"b\".grib", 12345, -7}));
    assert_false(sq_record_has_file(unit, &(struct sq_record_file){"a \"b\".grib", 12345, -8}));
    assert_false(sq_record_has_file(unit, &(struct sq_record_file){"a \"b\".grib", 12346, -7}));
    const struct sq_record_array *array = sq_record_array_of(unit, "t2m");
    assert_non_null(array);
    assert_null(sq_record_array_of(unit, "t2"));
    assert_int_equal(array->chunk_count, 2);
    assert_int_equal(array->chunks[0].size_bytes, 100);
    assert_int_equal(array->chunks[0].crc32c, 0xfeedbeef);
    assert_int_equal(array->chunks[1].size_bytes, 0);
    assert_int_equal(array->stored.count, 1);
    assert_int_equal(array->stored.items[0].last, 11);
    assert_string_equal(records.command, "squall convert in out");
    assert_int_equal(records.last_epoch, 1);
    sq_records_done(&records);
}

/* Of one epoch the part's number decides, as a number; then the epoch alone. */
static void journals_are_replayed_by_epoch_and_part(void **state)
{
    static const struct {
        struct sq_record_source source;
        uint64_t size;
    } journals[] = {{{2, 1}, 21}, {{1, 10}, 110}, {{1, 2}, 12}, {{1, 9}, 19}};
    for (size_t last = 1; last <= 4; last++) {
        struct sq_journal *journal;
        assert_int_equal(sq_journal_new(*state, journals[4 - last].source, "x", &journal, NULL), 0);
        add_unit(journal, 7, journals[4 - last].size);
        sq_journal_close(journal);
        struct sq_records records = loaded(*state);
        const uint64_t expected = last == 1 ? 19 : last == 2 ? 19 : last == 3 ? 110 : 21;
        assert_int_equal(sq_records_unit(&records, 7)->arrays[0].chunks[0].size_bytes, expected);
        assert_int_equal(records.journal_count, last);
        sq_records_done(&records);
    }
}

static void assert_same_records(const struct sq_records *a, const struct sq_records *b)
{
    assert_int_equal(a->unit_count, b->unit_count);
    assert_int_equal(a->left_count, b->left_count);
    for (size_t i = 0; i < a->unit_count; i++) {
        assert_int_equal(a->units[i].unit, b->units[i].unit);
        assert_int_equal(a->units[i].valid, b->units[i].valid);
        assert_int_equal(a->units[i].is_staged, b->units[i].is_staged);
        assert_int_equal(a->units[i].arrays[0].chunks[0].size_bytes, b->units[i].arrays[0].chunks[0].size_bytes);
        assert_string_equal(a->units[i].damage ? a->units[i].damage : "", b->units[i].damage ? b->units[i].damage : "");
        assert_true(sq_record_has_file(&b->units[i], &a->units[i].files[0]));
    }
    for (size_t i = 0; i < a->left_count; i++) {
        assert_int_equal(a->left[i].unit, b->left[i].unit);
        assert_string_equal(a->left[i].why, b->left[i].why);
    }
    for (size_t i = 0; i < a->input_count; i++)
        assert_true(sq_records_know_input(b, &a->inputs[i]));
    assert_string_equal(a->command, b->command);
}

/* Of 80 journals, with every kind of line: all are put together; killed at any removal, the rest says the same, and the next time goes on. */
static void many_journals_are_put_into_one_that_says_the_same(void **state)
{
    enum { JOURNALS = 80 };
    static char *texts[JOURNALS + 1];
    static char paths[JOURNALS + 1][64];
    srand(3);
    for (unsigned i = 1; i <= JOURNALS; i++) {
        struct sq_journal *journal = journal_in(*state, i);
        const uint64_t unit = (uint64_t)rand() % 30;
        const struct sq_record_input input = {{"bad.grib", i % 7, 5}, "is cut off"};
        add_unit(journal, unit, 100 + i);
        if (i % 3 == 0)
            assert_int_equal(sq_journal_add_invalid(journal, unit, "t2m/c/3", NULL), 0);
        if (i % 5 == 0)
            assert_int_equal(sq_journal_add_left(journal, (uint64_t)rand() % 40, "because", NULL), 0);
        assert_int_equal(sq_journal_add_inputs(journal, &input, 1, NULL), 0);
        sq_journal_close(journal);
        size_t size;
        snprintf(paths[i], sizeof paths[i], "epoch-%06u-part-0.journal", i);
        assert_int_equal(sq_file_read_all(in_folder(*state, paths[i]), 1 << 20, &texts[i], &size, NULL), 0);
    }
    struct sq_records before = loaded(*state), joined = loaded(*state);
    assert_int_equal(sq_journals_join(*state, &joined, NULL), 0);
    assert_int_equal(joined.last_epoch, JOURNALS + 1);
    for (unsigned left = 0; left <= JOURNALS; left++) { /* what a kill leaves: the last of the old ones, too */
        for (unsigned i = JOURNALS; i > JOURNALS - left; i--)
            file_put(in_folder(*state, paths[i]), texts[i]);
        struct sq_records now = loaded(*state);
        assert_int_equal(now.journal_count, 1 + left);
        assert_same_records(&before, &now);
        sq_records_done(&now);
    }
    struct sq_records again = loaded(*state);
    assert_int_equal(sq_journals_join(*state, &again, NULL), 0);
    struct sq_records now = loaded(*state);
    assert_int_equal(now.journal_count, 1);
    assert_int_equal(now.last_epoch, JOURNALS + 2);
    assert_same_records(&before, &now);
    assert_int_equal(sq_journals_join(*state, &now, NULL), 0); /* one is few */
    assert_int_equal(now.last_epoch, JOURNALS + 2);
    sq_records_done(&before);
    sq_records_done(&joined);
    sq_records_done(&again);
    sq_records_done(&now);
    for (unsigned i = 1; i <= JOURNALS; i++)
        sq_free(texts[i]);
}

static void the_later_record_of_a_unit_holds(void **state)
{
    struct sq_journal *first = journal_in(*state, 1), *second = journal_in(*state, 2);
    add_unit(second, 5, 222); /* written before the first epoch's, and yet later */
    add_unit(first, 5, 111);
    add_unit(first, 4, 40);
    add_unit(first, 4, 41);
    sq_journal_close(first);
    sq_journal_close(second);
    struct sq_records records = loaded(*state);
    assert_int_equal(records.unit_count, 2);
    assert_int_equal(sq_records_unit(&records, 5)->arrays[0].chunks[0].size_bytes, 222);
    assert_int_equal(sq_records_unit(&records, 4)->arrays[0].chunks[0].size_bytes, 41);
    assert_int_equal(records.last_epoch, 2);
    sq_records_done(&records);
}

static void an_invalidation_keeps_what_was_stored(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1);
    add_unit(journal, 5, 111);
    assert_int_equal(sq_journal_add_invalid(journal, 5, "t/c/5: missing", NULL), 0);
    sq_journal_close(journal);
    struct sq_records records = loaded(*state);
    assert_false(sq_records_unit(&records, 5)->valid);
    assert_int_equal(sq_records_unit(&records, 5)->arrays[0].stored.items[0].last, 11);
    sq_records_done(&records);
    journal = journal_in(*state, 2);
    add_unit(journal, 5, 112);
    sq_journal_close(journal);
    records = loaded(*state);
    assert_true(sq_records_unit(&records, 5)->valid);
    sq_records_done(&records);
}

static void known_inputs_are_found_again(void **state)
{
    const struct sq_record_input inputs[] = {{{"b", 2, 2}, "byte 7: cut"}, {{"a", 1, 1}, "off cadence"}};
    struct sq_journal *journal = journal_in(*state, 1);
    assert_int_equal(sq_journal_add_inputs(journal, inputs, 2, NULL), 0);
    sq_journal_close(journal);
    struct sq_records records = loaded(*state);
    assert_true(sq_records_know_input(&records, &inputs[0]));
    assert_true(sq_records_know_input(&records, &inputs[1]));
    assert_false(sq_records_know_input(&records, &(struct sq_record_input){{"a", 1, 1}, "byte 7: cut"}));
    assert_false(sq_records_know_input(&records, &(struct sq_record_input){{"a", 1, 2}, "off cadence"}));
    sq_records_done(&records);
}

static void why_a_unit_was_left_is_told_until_it_is_written(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1);
    add_unit(journal, 5, 111);
    assert_int_equal(sq_journal_add_left(journal, 5, "would lose a field", NULL), 0);
    assert_int_equal(sq_journal_add_left(journal, 6, "unreadable", NULL), 0);
    sq_journal_close(journal);
    struct sq_records records = loaded(*state);
    assert_string_equal(sq_records_left(&records, 5), "would lose a field");
    assert_true(sq_records_unit(&records, 5)->valid);
    assert_string_equal(sq_records_left(&records, 6), "unreadable");
    assert_null(sq_records_unit(&records, 6));
    assert_null(sq_records_left(&records, 7));
    sq_records_done(&records);
    journal = journal_in(*state, 2);
    add_unit(journal, 6, 112);
    sq_journal_close(journal);
    records = loaded(*state);
    assert_null(sq_records_left(&records, 6));
    assert_non_null(sq_records_left(&records, 5));
    sq_records_done(&records);
}

static const char *journal_path(const char *folder)
{
    return in_folder(folder, "epoch-000001-part-0.journal");
}

static void every_torn_end_loses_only_the_last_record(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1);
    SQ_CLEANUP_FREE char *text = NULL;
    size_t size, one;
    struct sq_file_identity identity;
    enum sq_file_kind kind;
    add_unit(journal, 1, 10);
    assert_int_equal(sq_file_stat(journal_path(*state), &kind, &identity, NULL), 0);
    one = identity.size_bytes;
    add_unit(journal, 2, 20);
    sq_journal_close(journal);
    assert_int_equal(sq_file_read_all(journal_path(*state), 1 << 20, &text, &size, NULL), 0);
    for (size_t cut = one; cut < size; cut++) {
        assert_int_equal(truncate(journal_path(*state), (off_t)cut), 0);
        struct sq_records records = loaded(*state);
        assert_int_equal(records.unit_count, 1);
        assert_non_null(sq_records_unit(&records, 1));
        sq_records_done(&records);
        text[size] = 0;
        file_put(journal_path(*state), text);
    }
}

static void a_damaged_line_before_the_last_is_an_error(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1);
    SQ_CLEANUP_FREE char *text = NULL;
    size_t size;
    struct sq_records records;
    struct squall_error err = SQUALL_ERROR_INIT;
    add_unit(journal, 1, 10);
    add_unit(journal, 2, 20);
    sq_journal_close(journal);
    assert_int_equal(sq_file_read_all(journal_path(*state), 1 << 20, &text, &size, NULL), 0);
    *strstr(text, "t2m") = 'T';
    file_put(journal_path(*state), text);
    assert_int_equal(sq_records_load(*state, &records, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "epoch-000001-part-0.journal, line 2"));
}

/* Whatever a line says, replay answers: with records or with an error. Each line gets a right checksum, so that it is read. */
static void no_damage_to_a_record_breaks_the_replay(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1);
    SQ_CLEANUP_FREE char *text = NULL;
    size_t size, accepted = 0, refused = 0;
    const struct sq_record_input input = {{"b", 2, 2}, "cut"};
    add_unit(journal, 1, 10);
    assert_int_equal(sq_journal_add_invalid(journal, 1, "t/c/1: missing", NULL), 0);
    assert_int_equal(sq_journal_add_left(journal, 2, "why", NULL), 0);
    assert_int_equal(sq_journal_add_inputs(journal, &input, 1, NULL), 0);
    sq_journal_close(journal);
    assert_int_equal(sq_file_read_all(journal_path(*state), 1 << 20, &text, &size, NULL), 0);
    srand(11);
    for (int round = 0; round < 4000; round++) {
        SQ_CLEANUP_FREE char *damaged = sq_strndup(text, size);
        SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
        for (int n = rand() % 4; n >= 0; n--) {
            static const char INTO[] = "0123456789-,:[]{}\"nulltrue ";
            char *at = damaged + (size_t)rand() % size;
            if (*at != '\n')
                *at = INTO[(size_t)rand() % (sizeof INTO - 1)];
        }
        for (char *line = damaged; *line;) {
            char *end = strchr(line, '\n');
            sq_text_printf(&out, "%08x %.*s\n", sq_crc32c(0, line + 9, (size_t)(end - line - 9)), (int)(end - line - 9), line + 9);
            line = end + 1;
        }
        file_put(journal_path(*state), out.data);
        struct sq_records records;
        int status = sq_records_load(*state, &records, NULL);
        assert_true(status == 0 || status == SQUALL_ECORRUPT || status == SQUALL_EREFUSED);
        accepted += status == 0;
        refused += status != 0;
        if (!status)
            sq_records_done(&records);
    }
    assert_true(accepted > 0 && refused > 0);
}

static void a_journal_is_never_written_over(void **state)
{
    struct sq_journal *journal = journal_in(*state, 1), *again;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_journal_begin(journal, NULL), 0);
    assert_int_equal(sq_journal_new(*state, (struct sq_record_source){1, 0}, "x", &again, &err), 0);
    assert_int_equal(sq_journal_begin(again, &err), SQUALL_EIO);
    assert_int_equal(sq_journal_add_invalid(again, 1, "t/c/1: missing", &err), SQUALL_EIO);
    sq_journal_close(again);
    sq_journal_close(journal);
}

static void a_journal_without_additions_leaves_no_file(void **state)
{
    enum sq_file_kind kind;
    struct sq_journal *journal = journal_in(*state, 1);
    sq_journal_close(journal);
    assert_int_equal(sq_file_stat(journal_path(*state), &kind, NULL, NULL), 0);
    assert_int_equal(kind, SQ_FILE_NONE);
    journal = journal_in(*state, 1);
    assert_int_equal(sq_journal_begin(journal, NULL), 0);
    sq_journal_close(journal);
    struct sq_records records = loaded(*state);
    assert_int_equal(records.last_epoch, 1);
    assert_string_equal(records.command, "squall convert in out");
    sq_records_done(&records);
}

static void a_folder_without_journals_has_no_records(void **state)
{
    struct sq_records records = loaded(in_folder(*state, "not-there"));
    assert_int_equal(records.unit_count, 0);
    assert_int_equal(records.last_epoch, 0);
    sq_records_done(&records);
}

/* ---- the lock -------------------------------------------------------------------------------------------------------------------- */

static const struct sq_part WHOLE = {0};

static void a_lock_is_refused_to_others_until_it_is_released(void **state)
{
    struct sq_lock *lock, *other;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_lock_look(*state, WHOLE, NULL, NULL), 0);
    assert_int_equal(sq_lock_take(*state, WHOLE, NULL, &lock, NULL), 0);
    assert_int_equal(sq_lock_take(*state, WHOLE, NULL, &other, &err), SQUALL_EREFUSED);
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_non_null(strstr(err.message, pid));
    assert_int_equal(sq_lock_look(*state, WHOLE, NULL, NULL), SQUALL_EREFUSED);
    sq_lock_release(lock);
    assert_int_equal(sq_lock_take(*state, WHOLE, NULL, &lock, NULL), 0);
    sq_lock_release(lock);
}

static void a_dead_process_s_lock_is_taken_over(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        struct sq_lock *lock;
        _exit(sq_lock_take(*state, WHOLE, NULL, &lock, NULL) ? 1 : 0); /* without releasing it */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct sq_lock *lock;
    assert_int_equal(sq_lock_look(*state, WHOLE, NULL, NULL), 0);
    assert_int_equal(sq_lock_take(*state, WHOLE, NULL, &lock, NULL), 0);
    assert_int_equal(sq_lock_look(*state, WHOLE, NULL, NULL), SQUALL_EREFUSED);
    sq_lock_release(lock);
}

static void put_lock(const char *folder, const struct sq_process *p)
{
    char text[800];
    snprintf(
        text, sizeof text,
        "{\"host\":\"%s\",\"boot\":\"%s\",\"pid_namespace\":\"%s\",\"pid\":%lld,\"start_ticks\":%llu,\"since\":\"2026-01-01T00:00:00Z\"}",
        p->host, p->boot, p->pid_namespace, (long long)p->pid, (unsigned long long)p->start_ticks);
    file_put(in_folder(folder, "lock"), text);
}

static void a_lock_is_judged_by_process_and_start(void **state)
{
    struct sq_process self;
    assert_int_equal(sq_process_self(&self, NULL), 0);
    put_lock(*state, &self);
    assert_int_equal(sq_lock_look(*state, WHOLE, NULL, NULL), SQUALL_EREFUSED);
    self.start_ticks++; /* an earlier process had our pid */
    put_lock(*state, &self);
    assert_int_equal(sq_lock_look(*state, WHOLE, NULL, NULL), 0);
}

/* Another host of this name, an earlier start of this one, a container: a pid means nothing there. */
static void a_lock_from_elsewhere_is_never_taken_over(void **state)
{
    struct sq_process self;
    assert_int_equal(sq_process_self(&self, NULL), 0);
    self.start_ticks++;
    for (int which = 0; which < 3; which++) {
        struct sq_process other = self;
        struct sq_lock *lock;
        struct squall_error err = SQUALL_ERROR_INIT;
        strcpy(which == 0 ? other.host : which == 1 ? other.boot : other.pid_namespace, "another");
        put_lock(*state, &other);
        assert_int_equal(sq_lock_take(*state, WHOLE, NULL, &lock, &err), SQUALL_EREFUSED);
        assert_non_null(strstr(err.message, other.host));
        assert_non_null(strstr(err.message, in_folder(*state, "lock")));
        assert_non_null(strstr(err.message, "remove"));
    }
}

static void a_lock_that_says_nothing_is_no_invitation(void **state)
{
    const char *const texts[] = {"", "{", "[]", "{\"host\":1}"};
    struct squall_error err = SQUALL_ERROR_INIT;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        file_put(in_folder(*state, "lock"), texts[i]);
        assert_int_equal(sq_lock_look(*state, WHOLE, NULL, &err), SQUALL_EREFUSED);
        assert_non_null(strstr(err.message, "remove it"));
    }
}

/* ---- locks of parts --------------------------------------------------------------------------------------------------------------- */

static struct sq_lock *taken(const char *folder, unsigned number, unsigned count)
{
    struct sq_lock *lock = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    const int status = sq_lock_take(folder, (struct sq_part){number, count}, NULL, &lock, &err);
    if (status)
        fail_msg("%s", err.message);
    return lock;
}

static void assert_refused(const char *folder, unsigned number, unsigned count, const char *told)
{
    struct sq_lock *lock;
    struct squall_error err = SQUALL_ERROR_INIT;
    const struct sq_part part = {number, count};
    assert_int_equal(sq_lock_look(folder, part, NULL, NULL), SQUALL_EREFUSED);
    assert_int_equal(sq_lock_take(folder, part, NULL, &lock, &err), SQUALL_EREFUSED);
    assert_non_null(strstr(err.message, told));
}

static void parts_of_one_count_hold_locks_beside_each_other(void **state)
{
    struct sq_lock *first = taken(*state, 1, 3), *third = taken(*state, 3, 3);
    assert_refused(*state, 1, 3, "part 1 of 3");
    assert_refused(*state, 2, 4, "of 3");
    assert_refused(*state, 0, 0, "of 3");
    sq_lock_release(first);
    assert_refused(*state, 0, 0, "part 3 of 3");
    sq_lock_release(third);
    struct sq_lock *whole = taken(*state, 0, 0);
    assert_refused(*state, 1, 3, "in use by process");
    sq_lock_release(whole);
    sq_lock_release(taken(*state, 2, 4));
}

static void the_whole_takes_over_the_locks_of_dead_parts(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        struct sq_lock *lock;
        _exit(sq_lock_take(*state, (struct sq_part){2, 3}, NULL, &lock, NULL) ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sq_lock_release(taken(*state, 1, 2));
    assert_int_equal(access(in_folder(*state, "lock-part-2-of-3"), F_OK), 0);
    sq_lock_release(taken(*state, 0, 0));
    assert_int_equal(access(in_folder(*state, "lock-part-2-of-3"), F_OK), -1);
}

/* Of parts that begin and end at once one is alone at its end, and no two hold the brief lock. */
static void the_last_of_many_parts_is_alone(void **state)
{
    enum { PARTS = 8, ROUNDS = 12 };
    const char *folder = *state;
    for (int round = 0; round < ROUNDS; round++) {
        int alone_count = 0, failed = 0, ended;
        for (unsigned i = 1; i <= PARTS; i++) {
            if (fork() != 0)
                continue;
            squall_context *ctx;
            struct sq_lock *own, *brief;
            const struct sq_part part = {i, PARTS};
            bool alone;
            if (squall_context_new(NULL, &ctx, NULL) || sq_lock_take(folder, part, NULL, &own, NULL))
                _exit(1);
            for (int turn = 0; turn < 2; turn++) { /* when it begins, and when it ends */
                if (sq_lock_wait(folder, part, ctx, &brief, NULL))
                    _exit(1);
                FILE *only = fopen(in_folder(folder, "only"), "wx");
                if (!only || fclose(only) || unlink(in_folder(folder, "only")) || sq_lock_alone(folder, part, &alone, NULL))
                    _exit(1);
                if (turn == 1)
                    sq_lock_release(own);
                sq_lock_release(brief);
            }
            _exit(alone ? 2 : 0);
        }
        while (wait(&ended) > 0) {
            failed += ended != 0 && ended != 2 << 8;
            alone_count += ended == 2 << 8;
        }
        assert_int_equal(failed, 0);
        assert_true(alone_count >= 1); /* more where all others have ended before it begins */
    }
}

/* Many take it at once, over and over, some of them dying with it: no two ever hold it. */
static void of_many_takers_one_holds_it(void **state)
{
    enum { TAKERS = 8, ROUNDS = 40 };
    const char *folder = *state;
    for (int t = 0; t < TAKERS; t++) {
        if (fork() != 0)
            continue;
        int taken = 0;
        for (int round = 0; round < ROUNDS; round++) {
            struct sq_lock *lock;
            if (sq_lock_take(folder, WHOLE, NULL, &lock, NULL))
                continue;
            FILE *alone = fopen(in_folder(folder, "alone"), "wx");
            if (!alone)
                _exit(1);
            fclose(alone);
            unlink(in_folder(folder, "alone"));
            taken++;
            if (t % 2 == 0 && round == ROUNDS / 2)
                _exit(0);
            sq_lock_release(lock);
        }
        _exit(taken ? 0 : 2);
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed += status == 256;
    assert_int_equal(failed, 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_reads_as_it_was_written),
        cmocka_unit_test(text_that_is_no_set_is_refused),
        cmocka_unit_test(lacking_counts_like_bits),
        IN_FOLDER(a_record_reads_as_it_was_written),
        IN_FOLDER(journals_are_replayed_by_epoch_and_part),
        IN_FOLDER(many_journals_are_put_into_one_that_says_the_same),
        IN_FOLDER(the_later_record_of_a_unit_holds),
        IN_FOLDER(an_invalidation_keeps_what_was_stored),
        IN_FOLDER(known_inputs_are_found_again),
        IN_FOLDER(why_a_unit_was_left_is_told_until_it_is_written),
        IN_FOLDER(no_damage_to_a_record_breaks_the_replay),
        IN_FOLDER(every_torn_end_loses_only_the_last_record),
        IN_FOLDER(a_damaged_line_before_the_last_is_an_error),
        IN_FOLDER(a_journal_is_never_written_over),
        IN_FOLDER(a_journal_without_additions_leaves_no_file),
        IN_FOLDER(a_folder_without_journals_has_no_records),
        IN_FOLDER(a_lock_is_refused_to_others_until_it_is_released),
        IN_FOLDER(a_dead_process_s_lock_is_taken_over),
        IN_FOLDER(a_lock_is_judged_by_process_and_start),
        IN_FOLDER(a_lock_from_elsewhere_is_never_taken_over),
        IN_FOLDER(a_lock_that_says_nothing_is_no_invitation),
        IN_FOLDER(parts_of_one_count_hold_locks_beside_each_other),
        IN_FOLDER(the_whole_takes_over_the_locks_of_dead_parts),
        IN_FOLDER(the_last_of_many_parts_is_alone),
        IN_FOLDER(of_many_takers_one_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
