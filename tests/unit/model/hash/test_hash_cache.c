/* The cache of digests: what it remembers, notices and refuses. */
#define _GNU_SOURCE
#include "unit/hash_case.h"

/* ── The cache ── */

#define CACHE_HEAD "{\"safetensors_hash_cache\":2}\n"
#define CACHE_TIMES "\"mtime_ns\":4,\"ctime_ns\":5,"
#define CACHE_LINE "{\"device\":1,\"inode\":2,\"size\":3," CACHE_TIMES "\"hashes\":"

static unsigned long long ns_of(struct timespec time) {
    return (unsigned long long)time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

static sft_hash_cache *open_cache(const char *path) {
    sft_hash_cache *cache;
    sft_error err = SFT_ERROR_INIT;
    if (sft_hash_cache_open(path, NULL, &cache, &err)) fail_msg("%s", err.message);
    return cache;
}

static seen hash_cached(sft_hash_cache *cache, const char *path, uint32_t algos) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_hash_request ask = { path, algos };
    seen s = { 0 };
    options.cache = cache;
    assert_int_equal(sft_hash_paths(&ask, 1, &options, keep, &s, NULL, NULL), SFT_OK);
    return s;
}

static void cache_remembers(void **state) {
    const char *path = temp_path(&folder, "cache"), *model = nth_vector(3);
    (void)state;
    sft_hash_cache *cache = open_cache(path);
    assert_null(sft_hash_cache_note(cache));
    seen s = hash_cached(cache, model, SFT_HASH_ALL);
    assert_false(s.last.is_remembered);
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    s = hash_cached(cache, model, SFT_HASH_ALL);
    assert_true(s.last.is_remembered);
    assert_hashes(&s.last.hashes, v4);
    sft_hash_cache_close(cache);
}

static void change_byte(const char *path, off_t at) {
    int fd = open(path, O_WRONLY);
    temp_must(fd >= 0 && pwrite(fd, "!", 1, at) == 1 && close(fd) == 0, "change");
}

/* What is remembered is not read: the file may have become unreadable. */
static void cache_reads_no_data(void **state) {
    const char *model = nth_vector(1), *line = temp_path(&folder, "cache");
    struct stat st;
    char text[512];
    (void)state;
    temp_must(stat(model, &st) == 0, "stat");
    (void)snprintf(text, sizeof text,
                   CACHE_HEAD "{\"device\":%llu,\"inode\":%llu,\"size\":%llu,\"mtime_ns\":%llu,"
                              "\"ctime_ns\":%llu,\"hashes\":{\"crc32\":\"00c0ffee\"}}\n",
                   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                   (unsigned long long)st.st_size, ns_of(st.st_mtim), ns_of(st.st_ctim));
    line = temp_text(&folder, "cache", text);
    sft_hash_cache *cache = open_cache(line);
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_true(s.last.is_remembered);
    assert_string_equal(sft_hashes_get(&s.last.hashes, SFT_HASH_CRC32), "00c0ffee");
    sft_hash_cache_close(cache);
}

/* Bytes change and the time of the last change is set back, as --keep-mtime and touch do: ctime
 * tells. */
static void cache_notices_what_mtime_hides(void **state) {
    const char *model = nth_vector(1);
    struct stat before;
    struct timespec times[2];
    (void)state;
    sft_hash_cache *cache = open_cache(temp_path(&folder, "cache"));
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_SHA256));
    temp_must(stat(model, &before) == 0, "stat");
    (void)usleep(20000); /* more than the clock of file systems ticks in */
    change_byte(model, 500);
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    temp_must(utimensat(AT_FDCWD, model, times, 0) == 0, "utimensat");
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_false(s.last.is_remembered);
    assert_string_not_equal(s.text[0], v2[0]);
    sft_hash_cache_close(cache);
}

/* What is missing is added to what is known. */
static void cache_grows(void **state) {
    const char *path = temp_path(&folder, "cache"), *model = nth_vector(1);
    (void)state;
    sft_hash_cache *cache = open_cache(path);
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_SHA256));
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_false(s.last.is_remembered);
    s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32) | SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_true(s.last.is_remembered);
    assert_hashes(&s.last.hashes, v2);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

static void cache_knows_sets(void **state) {
    const char *index = make_set();
    uint32_t algos = CONTENT | SFT_HASH_BIT(SFT_HASH_SHA256);
    (void)state;
    sft_hash_cache *cache = open_cache(temp_path(&folder, "cache"));
    seen s = hash_cached(cache, index, algos);
    assert_false(s.last.is_remembered);
    assert_int_equal(sft_hash_cache_count(cache), 3);
    s = hash_cached(cache, index, algos);
    assert_true(s.last.is_remembered);
    assert_string_equal(sft_hashes_get(&s.last.hashes, SFT_HASH_CONTENT),
                        content_of(three_in_one, "123abcd", 7));
    sft_hash_cache_close(cache);
}

/* only_cached: what the cache does not know is not computed, of files and sets alike. */
static void only_the_cache_is_asked(void **state) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    const char *index = make_set();
    (void)state;
    options.cache = open_cache(temp_path(&folder, "cache"));
    options.only_cached = true;
    const sft_hash_request asks[] = { { index, CONTENT }, { nth_vector(1), SFT_HASH_ALL } };
    for (size_t i = 0; i < 2; i++) {
        seen s = { 0 };
        assert_int_equal(sft_hash_paths(&asks[i], 1, &options, keep, &s, NULL, NULL), SFT_OK);
        assert_null(s.last.error);
        assert_int_equal(sft_hashes_known(&s.last.hashes), 0);
        assert_int_equal(sft_hashes_asked(&s.last.hashes), asks[i].algos);
        (void)hash_cached(options.cache, asks[i].path, CONTENT);
        s = (seen){ 0 };
        assert_int_equal(sft_hash_paths(&asks[i], 1, &options, keep, &s, NULL, NULL), SFT_OK);
        assert_int_equal(sft_hashes_known(&s.last.hashes), CONTENT);
    }
    sft_hash_cache_close(options.cache);
}

static void many_are_remembered(void **state) {
    char name[16];
    (void)state;
    const char *path = temp_path(&folder, "cache");
    sft_hash_cache *cache = open_cache(path);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)hash_cached(cache, temp_text(&folder, name, name), SFT_HASH_BIT(SFT_HASH_CRC32));
    }
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 300);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "%s/n%d", "", i);
        char whole[128];
        (void)snprintf(whole, sizeof whole, "%s%s", folder.path, name);
        seen s = hash_cached(cache, whole, SFT_HASH_BIT(SFT_HASH_CRC32));
        assert_true(s.last.is_remembered);
    }
    sft_hash_cache_close(cache);
}

static bool count_remembered(void *ctx, const sft_hash_result *result) {
    size_t *count = ctx;
    assert_true(result->is_remembered);
    assert_int_equal(result->index, (*count)++);
    return true;
}

static size_t peak_of_remembered(sft_hash_cache *cache, const sft_hash_request *asks,
                                 size_t count) {
    test_memory memory = { 0 };
    sft_allocator alloc = { resize_test_memory, &memory };
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    size_t found = 0;
    job.threads = 1;
    open.alloc = &alloc;
    options.open = &open;
    options.cache = cache;
    assert_int_equal(sft_hash_paths(asks, count, &options, count_remembered, &found, &job, NULL),
                     SFT_OK);
    assert_int_equal(found, count);
    return memory.peak;
}

/* Their results are delivered as they come, not kept until a file must be read. */
static void remembered_results_take_no_memory(void **state) {
    enum { FEW = 100, MANY = 5000 };
    static sft_hash_request asks[MANY];
    const char *model = nth_vector(1);
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        asks[i] = (sft_hash_request){ model, SFT_HASH_BIT(SFT_HASH_CRC32) };
    sft_hash_cache *cache = open_cache(temp_path(&folder, "cache"));
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    size_t few = peak_of_remembered(cache, asks, FEW);
    assert_in_range(peak_of_remembered(cache, asks, MANY), few, few + (1u << 20));
    sft_hash_cache_close(cache);
}

static void damage_is_noted(void **state) {
    static const char *const bad[] = {
        CACHE_HEAD "x\n", CACHE_HEAD "{}\n", CACHE_HEAD "\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"}}", /* no newline: cut */
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a118\"}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0D4A1185\"}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":7}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32,autov1\":\"0d4a1185\"}}x\n",
        CACHE_HEAD CACHE_LINE "[]}\n",
        CACHE_HEAD "[]\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"}}{}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"},\"mark\":7}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"},\"mark\":{\"time\":\"1\"}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"},\"mark\":{\"name\":1}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"},\"new\":tru}\n",
        CACHE_HEAD "{\"device\":1,\"inode\":2,\"size\":3,\"hashes\":{}}\n",
        CACHE_HEAD "{\"device\":1,\"inode\":2,\"size\":3,\"mtime_ns\":4,\"hashes\":{}}\n",
        CACHE_HEAD "{\"device\":1,\"inode\":-2,\"size\":3," CACHE_TIMES "\"hashes\":{}}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = temp_text(&folder, "cache", bad[i]);
        sft_hash_cache *cache = open_cache(path);
        assert_non_null(sft_hash_cache_note(cache));
        assert_int_equal(sft_hash_cache_count(cache), 0);
        (void)hash_cached(cache, nth_vector(0), SFT_HASH_BIT(SFT_HASH_SHA256));
        assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
        sft_hash_cache_close(cache);
        cache = open_cache(path);
        assert_null(sft_hash_cache_note(cache));
        assert_int_equal(sft_hash_cache_count(cache), 1);
        sft_hash_cache_close(cache);
    }
}

/* Fields and algorithms of a later version are passed over. */
static void later_caches_are_read(void **state) {
    (void)state;
    sft_hash_cache *cache = open_cache(temp_text(
        &folder, "cache",
        CACHE_HEAD "{\"new\":[{}],\"device\":1,\"inode\":2,\"size\":3," CACHE_TIMES
                   "\"hashes\":{\"sha3\":\"00\",\"all\":\"0\",\"crc32\":\"0d4a1185\"},"
                   "\"mark\":{\"new\":[1],\"name\":\"a\",\"time\":6}}\n"));
    assert_null(sft_hash_cache_note(cache));
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

/* A cache of the version without ctime is a cache; nothing of it is believed. */
static void older_caches_begin_anew(void **state) {
    (void)state;
    const char *path = temp_text(&folder, "cache",
                                 "{\"safetensors_hash_cache\":1}\n"
                                 "{\"device\":1,\"inode\":2,\"size\":3,\"mtime_ns\":4,"
                                 "\"hashes\":{\"crc32\":\"0d4a1185\"}}\n");
    sft_hash_cache *cache = open_cache(path);
    assert_null(sft_hash_cache_note(cache));
    assert_int_equal(sft_hash_cache_count(cache), 0);
    (void)hash_cached(cache, nth_vector(0), SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

static void refuses_cache(const char *path, sft_code want) {
    sft_hash_cache *cache = (sft_hash_cache *)1;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_hash_cache_open(path, NULL, &cache, &err);
    if (code != want) fail_msg("%s: %d, %s", path, code, err.message);
    assert_null(cache);
}

static void unusable_caches_are_errors(void **state) {
    (void)state;
    refuses_cache(folder.path, SFT_IO_NOT_FILE);
    refuses_cache(NULL, SFT_BAD_ARGUMENT);
    sft_hash_cache_close(NULL);
}

/* Whatever is no cache is neither read nor replaced. */
static void other_files_are_no_caches(void **state) {
    static const char *const texts[] = {
        "\n", "hello\n", "{}\n", "{\"safetensors_hash_cache\":2}", "{\"safetensors_hash_cache\"",
        "{\"safetensors_hash_cache\":3}\n", "{\"safetensors_hash_cache\":20}\n",
        " {\"safetensors_hash_cache\":2}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refuses_cache(temp_text(&folder, "cache", texts[i]), SFT_EXISTS);
    refuses_cache(nth_vector(3), SFT_EXISTS);
    const char *good = temp_text(&folder, "good", CACHE_HEAD);
    const char *link = temp_path(&folder, "link"), *fifo = temp_path(&folder, "fifo");
    temp_must(symlink(good, link) == 0, "symlink");
    temp_must(mkfifo(fifo, 0600) == 0, "mkfifo");
    refuses_cache(link, SFT_IS_LINK);
    refuses_cache(fifo, SFT_IO_NOT_FILE);
    temp_must(unlink(good) == 0, "unlink"); /* the link leads nowhere now */
    refuses_cache(link, SFT_IS_LINK);
    temp_must(unlink(link) == 0 && unlink(fifo) == 0, "unlink");
}

/* Who may write a cache says which digests are believed. */
static void caches_of_others_are_not_believed(void **state) {
    (void)state;
    const char *path = temp_text(&folder, "cache", CACHE_HEAD);
    for (int mode = 0; mode <= 0777; mode++) {
        if (mode & ~0666 || (mode & 0600) != 0600) continue;
        temp_must(chmod(path, (mode_t)mode) == 0, "chmod");
        if (mode & 022) refuses_cache(path, SFT_IO_OPEN);
        else sft_hash_cache_close(open_cache(path));
    }
    if (geteuid() != 0) skip(); /* only root gives files away */
    temp_must(chmod(path, 0600) == 0 && chown(path, 12345, (gid_t)-1) == 0, "chown");
    refuses_cache(path, SFT_IO_OPEN);
    temp_must(chown(path, 0, (gid_t)-1) == 0, "chown");
    sft_hash_cache_close(open_cache(path));
}

/* Between opening and saving another file came to stand there: it stays. */
static void saving_replaces_caches_only(void **state) {
    struct stat st;
    (void)state;
    for (int there = 0; there < 2; there++) {
        const char *path = temp_path(&folder, "cache");
        if (there) path = temp_text(&folder, "cache", CACHE_HEAD);
        sft_hash_cache *cache = open_cache(path);
        (void)hash_cached(cache, nth_vector(0), SFT_HASH_BIT(SFT_HASH_SHA256));
        (void)temp_text(&folder, "cache", "mine");
        assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_EXISTS);
        temp_must(stat(path, &st) == 0 && st.st_size == 4, "stat");
        temp_must(unlink(path) == 0, "unlink");
        assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
        temp_must(stat(path, &st) == 0, "stat");
        assert_int_equal(st.st_mode & 0777, 0600);
        sft_hash_cache_close(cache);
        temp_must(unlink(path) == 0, "unlink");
    }
}

/* ── The cache: large and hostile ones ── */

typedef struct counted {
    size_t now, most;
} counted;

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counted *c = ctx;
    if (new_size == 0) {
        c->now -= ptr ? old_size : 0;
        free(ptr);
        return NULL;
    }
    void *at = realloc(ptr, new_size);
    if (!at) return NULL;
    c->now += new_size - (ptr ? old_size : 0);
    if (c->now > c->most) c->most = c->now;
    return at;
}

typedef void (*line_fn)(FILE *file, uint64_t i);

static const char *write_lines(uint64_t count, line_fn line) {
    const char *path = temp_path(&folder, "large");
    FILE *file = fopen(path, "w");
    temp_must(file != NULL, "fopen");
    (void)fputs(CACHE_HEAD, file);
    for (uint64_t i = 0; i < count; i++) line(file, i);
    temp_must(fclose(file) == 0, "write");
    return path;
}

static void put_key(FILE *file, uint64_t inode, uint64_t size, uint64_t mtime) {
    (void)fprintf(file, "{\"device\":1,\"inode\":%llu,\"size\":%llu,\"mtime_ns\":%llu,"
                        "\"ctime_ns\":5,\"hashes\":{\"crc32\":\"0d4a1185\"}}\n",
                  (unsigned long long)inode, (unsigned long long)size, (unsigned long long)mtime);
}

static void line_ascending(FILE *file, uint64_t i) {
    put_key(file, i, 3, 4);
}

/* Keys that all fell into one place of a table without a seed. */
static void line_colliding(FILE *file, uint64_t i) {
    uint64_t h = 2 * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29 ^ i ^ UINT64_C(1) << 40) * UINT64_C(0xbf58476d1ce4e5b9);
    put_key(file, 2, h ^ h >> 32 ^ 77, i);
}

static void line_empty(FILE *file, uint64_t i) {
    (void)i;
    (void)fputs("\n", file);
}

static void line_says_nothing(FILE *file, uint64_t i) {
    (void)fprintf(file, "{\"inode\":%llu,\"device\":1,\"size\":3,\"mtime_ns\":4,\"ctime_ns\":5}\n",
                  (unsigned long long)i);
}

/* What opening costs: memory by the file's bytes, and time that does not go with the square. */
static size_t open_costs(uint64_t count, line_fn line, double *factor, double *seconds) {
    counted c = { 0, 0 };
    sft_allocator alloc = { .ctx = &c, .resize = count_resize };
    sft_hash_cache *cache;
    struct stat st;
    const char *path = write_lines(count, line);
    temp_must(stat(path, &st) == 0, "stat");
    clock_t begin = clock();
    assert_int_equal(sft_hash_cache_open(path, &alloc, &cache, NULL), SFT_OK);
    *seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    *factor = (double)c.most / (double)(st.st_size + 4096);
    size_t kept = sft_hash_cache_count(cache);
    sft_hash_cache_close(cache);
    assert_int_equal(c.now, 0);
    return kept;
}

static void hostile_caches_cost_little(void **state) {
    static const struct {
        uint64_t count;
        line_fn line;
        size_t kept;
    } rows[] = {
        { 40000, line_ascending, 40000 }, { 40000, line_colliding, 40000 },
        { 100000, line_empty, 0 },        { 40000, line_says_nothing, 0 },
        { 1, line_ascending, 1 },
    };
    double factor, seconds;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(open_costs(rows[i].count, rows[i].line, &factor, &seconds),
                         rows[i].kept);
        if (factor > 6) fail_msg("row %zu: %.1f bytes of memory for one of the file", i, factor);
        if (seconds > 5) fail_msg("row %zu: %.1f s", i, seconds);
    }
}

/* A full cache lets the oldest go, not all. */
static void the_oldest_are_evicted(void **state) {
    static char text[256];
    const size_t most = 1 << 18;
    (void)state;
    const char *path = write_lines(most + 500, line_ascending), *model = nth_vector(0);
    sft_hash_cache *cache = open_cache(path);
    assert_null(sft_hash_cache_note(cache));
    assert_int_equal(sft_hash_cache_count(cache), most);
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32)); /* one too many */
    assert_true(sft_hash_cache_count(cache) >= most / 2 && sft_hash_cache_count(cache) < most);
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_true(s.last.is_remembered);
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    size_t kept = sft_hash_cache_count(cache);
    sft_hash_cache_close(cache);
    FILE *file = fopen(path, "r");
    temp_must(file && fgets(text, sizeof text, file) && fgets(text, sizeof text, file), "read");
    unsigned long long oldest = strtoull(strstr(text, "\"inode\":") + 8, NULL, 10);
    assert_int_equal(oldest, most + 500 - (kept - 1));
    for (size_t i = 1; i + 1 < kept; i++) temp_must(fgets(text, sizeof text, file) != NULL, "read");
    assert_int_equal(strtoull(strstr(text, "\"inode\":") + 8, NULL, 10), most + 499);
    (void)fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cache_remembers, begin, end),
        cmocka_unit_test_setup_teardown(cache_reads_no_data, begin, end),
        cmocka_unit_test_setup_teardown(cache_grows, begin, end),
        cmocka_unit_test_setup_teardown(cache_knows_sets, begin, end),
        cmocka_unit_test_setup_teardown(only_the_cache_is_asked, begin, end),
        cmocka_unit_test_setup_teardown(many_are_remembered, begin, end),
        cmocka_unit_test_setup_teardown(remembered_results_take_no_memory, begin, end),
        cmocka_unit_test_setup_teardown(damage_is_noted, begin, end),
        cmocka_unit_test_setup_teardown(later_caches_are_read, begin, end),
        cmocka_unit_test_setup_teardown(cache_notices_what_mtime_hides, begin, end),
        cmocka_unit_test_setup_teardown(older_caches_begin_anew, begin, end),
        cmocka_unit_test_setup_teardown(other_files_are_no_caches, begin, end),
        cmocka_unit_test_setup_teardown(caches_of_others_are_not_believed, begin, end),
        cmocka_unit_test_setup_teardown(saving_replaces_caches_only, begin, end),
        cmocka_unit_test_setup_teardown(hostile_caches_cost_little, begin, end),
        cmocka_unit_test_setup_teardown(the_oldest_are_evicted, begin, end),
        cmocka_unit_test_setup_teardown(unusable_caches_are_errors, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
