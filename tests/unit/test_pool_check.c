/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool_check.c - what pools reject of options, tasks and arguments. */
#include <dirent.h>
#include <sched.h>

#include <xrun/func.h>
#include <xrun/pool.h>

#include "tests/unit/forked.h"
#include "tests/unit/seccomp.h"
#include "tests/unit/short_memory.h"
#include "worker/pool/conf.h"

TestSuite(pool_check, .timeout = 60);

#define ALLOCATIONS 100 /* there are less */
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))
#define NEGATIVE    "timeout: -2 ns is negative and not XR_TIMEOUT_DEFAULT"

static struct xr_error error;

/* --- functions ------------------------------------------------------------------------- */

static enum xr_status
nothing(struct xr_call *call, struct xr_value *args, void *ctx)
{
	(void)args;
	(void)ctx;
	return xr_reply(call, xr_value_new_nil());
}

static enum xr_status
raw(struct xr_call *call, const void *args, size_t len, void *ctx)
{
	(void)call;
	(void)args;
	(void)len;
	(void)ctx;
	return XR_OK;
}

static void
register_both(void)
{
	const struct xr_func funcs[] = {
		{ .size = sizeof(funcs[0]), .name = "nothing", .fn = nothing },
		{ .size = sizeof(funcs[0]), .name = "raw", .raw = raw },
	};

	NEED(xr_module_static(funcs, COUNT(funcs), NULL) == XR_OK);
}

static struct xr_value *
list_of(size_t count)
{
	struct xr_value *list = xr_value_new_list();

	for (size_t i = 0; i < count; i++)
		NEED(xr_value_append(list, xr_value_new_i64(1)) == XR_OK);
	return list;
}

/* The status, and the text of one that is not XR_OK. */
static void
expect(size_t row, enum xr_status status, enum xr_status want, const char *text)
{
	if (status != want || (want != XR_OK && strcmp(error.text, text) != 0))
		forked_note(__LINE__, "row %zu: %s: %s", row,
			xr_status_name(status), error.text);
}

/* --- options --------------------------------------------------------------------------- */

struct opts_row {
	struct xr_pool_opts o;
	enum xr_status status;
	const char *text;
};

static void
check_opts(const struct opts_row *row, size_t count)
{
	struct pool_conf conf;

	for (size_t i = 0; i < count; i++) {
		struct xr_pool_opts o = row[i].o;
		enum xr_status status;

		if (o.size == 0)
			o.size = sizeof(o);
		memset(&error, 0, sizeof(error));
		status = conf_init(&conf, &o, &error);
		expect(i, status, row[i].status, row[i].text);
		if (status == XR_OK)
			conf_fini(&conf);
	}
}

FORKED_TEST(pool_check, each_number_of_the_options_has_a_limit)
{
	const struct opts_row row[] = {
		{ { .size = sizeof(struct xr_pool_opts) - 1 }, XR_E_INVAL,
			"struct xr_pool_opts: its size" },
		{ { .size = sizeof(struct xr_pool_opts) + 1 }, XR_OK, NULL },
		{ { .kind = XR_POOL_THREADS }, XR_OK, NULL },
		{ { .kind = (enum xr_pool_kind)2 }, XR_E_INVAL,
			"no kind of pools is 2" },
		{ { .routing = XR_POOL_P2P }, XR_OK, NULL },
		{ { .routing = (enum xr_pool_routing)2 }, XR_E_INVAL,
			"no routing is 2" },
		{ { .on_worker_error = XR_POOL_TERMINATE }, XR_OK, NULL },
		{ { .on_worker_error = (enum xr_pool_on_error)2 }, XR_E_INVAL,
			"no on_worker_error is 2" },
		{ { .mode = XR_ENC_SHARE }, XR_OK, NULL },
		{ { .mode = (enum xr_enc_mode)(XR_ENC_SHARE + 1) }, XR_E_INVAL,
			"no mode is 2" },
		{ { .flags = XR_POOL_CONTEXT | XR_POOL_DRAINS }, XR_OK, NULL },
		{ { .flags = 4 }, XR_E_INVAL, "unknown flags 0x4" },
		{ { .start_window = XR_TIMEOUT_DEFAULT }, XR_OK, NULL },
		{ { .start_window = -2 }, XR_E_INVAL, NEGATIVE },
		{ { .workers = XR_POOL_WORKERS_MAX }, XR_OK, NULL },
		{ { .workers = XR_POOL_WORKERS_MAX + 1 }, XR_E_RANGE,
			"1001 workers, and 1000 are the most" },
		{ { .tasks = XR_POOL_TASKS_MAX }, XR_OK, NULL },
		{ { .tasks = XR_POOL_TASKS_MAX + 1 }, XR_E_RANGE,
			"65537 tasks, and 65536 are the most" },
	};

	check_opts(row, COUNT(row));
}

FORKED_TEST(pool_check, contexts_are_a_list_of_one_for_each_worker)
{
	struct xr_value *one = list_of(1), *two = list_of(2),
			*nil = xr_value_new_nil(), *dict = xr_value_new_dict();
	const struct opts_row row[] = {
		{ { .workers = 2, .contexts = two }, XR_E_INVAL,
			"contexts, and no function takes them: XR_POOL_CONTEXT" },
		{ { .workers = 2, .flags = XR_POOL_CONTEXT, .contexts = nil },
			XR_E_INVAL,
			"0 contexts for 2 workers: a list of one for each" },
		{ { .workers = 1, .flags = XR_POOL_CONTEXT, .contexts = dict },
			XR_E_INVAL,
			"1 contexts for 1 workers: a list of one for each" },
		{ { .workers = 2, .flags = XR_POOL_CONTEXT, .contexts = one },
			XR_E_INVAL,
			"1 contexts for 2 workers: a list of one for each" },
		{ { .workers = 2, .flags = XR_POOL_CONTEXT, .contexts = two },
			XR_OK, NULL },
	};

	NEED(xr_value_put(dict, "key", 3, xr_value_new_nil()) == XR_OK);
	check_opts(row, COUNT(row));
	xr_value_unref(dict);
	xr_value_unref(one);
	xr_value_unref(two);
	xr_value_unref(nil);
}

FORKED_TEST(pool_check, an_initializer_is_a_registered_function)
{
	struct xr_value *args = list_of(1), *nil = xr_value_new_nil();
	const struct opts_row row[] = {
		{ { .initializer = "nothing", .initargs = nil }, XR_E_INVAL,
			"initargs is a list, for an initializer" },
		{ { .initargs = args }, XR_E_INVAL,
			"initargs is a list, for an initializer" },
		{ { .initializer = "nothing", .initargs = args }, XR_OK, NULL },
		{ { .initializer = "nothing" }, XR_OK, NULL },
		{ { .initializer = "unknown" }, XR_E_NO_FUNCTION,
			"unknown is not registered, or after xr_init()" },
		{ { .initializer = "raw" }, XR_E_SCHEMA, "raw takes bytes" },
		{ { .initializer = "unknown", .module = "m.so" }, XR_OK, NULL },
	};

	register_both();
	check_opts(row, COUNT(row));
	xr_value_unref(args);
	xr_value_unref(nil);
}

FORKED_TEST(pool_check, options_that_are_zero_are_the_defaults)
{
	const struct xr_pool_opts plain = { .size = sizeof(plain) };
	struct xr_pool_opts o = { .size = sizeof(o),
		.kind = XR_POOL_THREADS,
		.workers = 3,
		.tasks = 7,
		.start_failures = 5,
		.start_window = 9,
		.mode = XR_ENC_SHARE };
	struct pool_conf c;
	char name[102];
	cpu_set_t set;

	NEED(sched_getaffinity(0, sizeof(set), &set) == 0);
	NEED(conf_init(&c, &plain, NULL) == XR_OK);
	EXPECT_EQ(c.workers, CPU_COUNT(&set));
	EXPECT_EQ(c.tasks, XR_POOL_TASKS);
	EXPECT_EQ(c.start_failures, XR_POOL_START_FAILURES);
	EXPECT_EQ(c.start_window, XR_POOL_START_WINDOW);
	EXPECT_STR(c.name, "pool");
	conf_fini(&c);
	memset(name, 'n', sizeof(name) - 1);
	name[101] = '\0';
	o.name = name;
	NEED(conf_init(&c, &o, NULL) == XR_OK);
	EXPECT_EQ(c.workers, 3);
	EXPECT_EQ(c.tasks, 7);
	EXPECT_EQ(c.start_failures, 5);
	EXPECT_EQ(c.start_window, 9);
	EXPECT_EQ(c.mode, XR_ENC_COPY);
	EXPECT_EQ(strlen(c.name), 100);
	conf_fini(&c);
	name[100] = '\0';
	o.kind = XR_POOL_PROCESSES;
	NEED(conf_init(&c, &o, NULL) == XR_OK);
	EXPECT_EQ(c.mode, XR_ENC_SHARE);
	EXPECT_STR(c.name, name);
	conf_fini(&c);
}

FORKED_TEST(pool_check, options_are_copied_or_there_is_no_memory)
{
	struct xr_value *args = list_of(1);
	const struct xr_pool_opts o = { .size = sizeof(o),
		.name = "name",
		.initializer = "nothing",
		.initargs = args,
		.method = "zygote",
		.module = "m.so" };
	unsigned n = 0, failed = 0;
	struct pool_conf c;
	enum xr_status status;

	register_both();
	do {
		was_short = false;
		until_short = ++n;
		status = conf_init(&c, &o, &error);
		until_short = 0;
		failed += was_short;
		EXPECT_EQ(status, was_short ? XR_E_NOMEM : XR_OK);
		if (status != XR_OK)
			EXPECT(c.name == NULL && c.module == NULL);
	} while (was_short && n < ALLOCATIONS);
	EXPECT_EQ(failed, 4);
	EXPECT_STR(c.initializer, "nothing");
	EXPECT_STR(c.method, "zygote");
	EXPECT_STR(c.module, "m.so");
	conf_fini(&c);
	xr_value_unref(args);
}

static enum xr_status
no_queues(struct xr_pool *pool, struct xr_pool_queues *queues, void *ctx,
	struct xr_error *err)
{
	(void)pool;
	(void)ctx;
	(void)err;
	queues->in[0] = NULL;
	queues->out = NULL;
	return XR_OK;
}

/* And both sides of a pool need one. */
static enum xr_status
no_results(struct xr_pool *pool, struct xr_pool_queues *queues, void *ctx,
	struct xr_error *err)
{
	enum xr_status status = xr_pool_setup_queues(pool, queues, err);

	(void)ctx;
	xr_queue_free(queues->out);
	queues->out = NULL;
	return status;
}

static enum xr_status
no_tasks(struct xr_pool *pool, struct xr_pool_queues *queues, void *ctx,
	struct xr_error *err)
{
	enum xr_status status = xr_pool_setup_queues(pool, queues, err);

	(void)ctx;
	xr_queue_free(queues->in[0]);
	queues->in[0] = NULL;
	return status;
}

FORKED_TEST(pool_check, a_pool_is_not_made_of_what_is_wrong)
{
	const struct xr_pool_ops small = { .size = sizeof(small) - 1 },
				 none = { .size = sizeof(none),
					 .setup_queues = no_queues },
				 in = { .size = sizeof(in),
					 .setup_queues = no_results },
				 out = { .size = sizeof(out),
					 .setup_queues = no_tasks };
	const struct opts_row row[] = {
		{ { .kind = XR_POOL_THREADS, .ops = &small }, XR_E_INVAL,
			"struct xr_pool_ops" },
		{ { .ops = &none }, XR_E_INVAL, "setup_queues: no queue" },
		{ { .ops = &in }, XR_E_INVAL, "setup_queues: no queue" },
		{ { .ops = &out }, XR_E_INVAL, "setup_queues: no queue" },
		{ { .method = "fork", .module = "m.so" }, XR_E_INVAL,
			"a module, and method fork" },
		{ { .method = "thread" }, XR_E_INVAL,
			"method 'thread' is not one of zygote, fork, spawn" },
	};
	struct xr_pool *pool = NULL;

	for (size_t i = 0; i < COUNT(row); i++) {
		struct xr_pool_opts o = row[i].o;

		o.size = sizeof(o);
		o.workers = 1;
		memset(&error, 0, sizeof(error));
		expect(i, xr_pool_new(&o, &pool, &error), row[i].status,
			row[i].text);
		EXPECT(pool == NULL);
	}
}

static enum xr_status
start_none(struct xr_pool *pool, void *ctx, struct xr_error *err)
{
	(void)pool;
	(void)ctx;
	(void)err;
	return XR_OK;
}

static int refused = -1, refused_with; /* from when there are queues on */

static enum xr_status
setup(struct xr_pool *pool, struct xr_pool_queues *queues, void *ctx,
	struct xr_error *err)
{
	enum xr_status status = xr_pool_setup_queues(pool, queues, err);
	int fd;

	(void)ctx;
	EXPECT_EQ(xr_queue_fd(queues->out, &fd, NULL), XR_OK);
	if (refused != -1)
		NEED(seccomp_refuse(refused, refused_with) == 0);
	return status;
}

static enum xr_status
make_pool(struct xr_pool **pool)
{
	const struct xr_pool_ops ops = { .size = sizeof(ops),
		.setup_queues = setup,
		.repopulate = start_none };
	const struct xr_pool_opts o = { .size = sizeof(o),
		.workers = 1,
		.tasks = 8,
		.ops = &ops };

	memset(&error, 0, sizeof(error));
	return xr_pool_new(&o, pool, &error);
}

static int
entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	NEED(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* The thread that looks after pools has gone with the last of them. */
static void
without(int nr, int sys, bool is_second, const char *text)
{
	int fds = entries("/proc/self/fd"), threads, how = -1;
	struct xr_pool *first = NULL, *pool = NULL;
	pid_t pid = fork();

	NEED(pid != -1);
	if (pid == 0) {
		threads = entries("/proc/self/task");
		if (is_second)
			NEED(make_pool(&first) == XR_OK);
		refused = nr;
		refused_with = sys;
		if (nr == SYS_memfd_create || nr == SYS_ftruncate)
			NEED(seccomp_refuse(nr, sys) == 0);
		EXPECT_EQ(make_pool(&pool), XR_E_SYS);
		EXPECT_STR(error.text, text);
		EXPECT(pool == NULL);
		xr_pool_free(first);
		EXPECT_EQ(entries("/proc/self/task"), threads);
		EXPECT_EQ(entries("/proc/self/fd"), fds);
		_exit(forked_wrong > 0);
	}
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
}

FORKED_TEST(pool_check, a_pool_is_not_made_of_system_calls_that_fail)
{
	without(SYS_epoll_create1, EMFILE, false, "epoll: Too many open files");
	without(SYS_eventfd2, EMFILE, false, "epoll: Too many open files");
	without(SYS_epoll_ctl, ENOSPC, false, "epoll: No space left on device");
	without(SYS_epoll_ctl, ENOSPC, true,
		"epoll_ctl: No space left on device");
	without(SYS_ftruncate, ENOSPC, false,
		"ftruncate: No space left on device");
	without(SYS_memfd_create, EMFILE, true,
		"memfd_create: Too many open files");
}

/* --- tasks ----------------------------------------------------------------------------- */

static enum xr_status
hear(struct xr_value *value, void *ctx)
{
	(void)value;
	(void)ctx;
	return XR_OK;
}

enum way {
	APPLY,
	MAP,
	STARMAP,
	IMAP,
	IMAP_ANY,
};

static enum xr_status
submit(struct xr_pool *pool, enum way way, const struct xr_pool_task *t)
{
	struct xr_future *f = NULL;
	struct xr_pool_iter *iter = NULL;
	enum xr_status status = XR_E_SYS;

	switch (way) {
	case APPLY:
		status = xr_pool_apply_async(pool, t, &f, &error);
		break;
	case MAP:
		status = xr_pool_map_async(pool, t, &f, &error);
		break;
	case STARMAP:
		status = xr_pool_starmap_async(pool, t, &f, &error);
		break;
	case IMAP:
		status = xr_pool_imap(pool, t, &iter, &error);
		break;
	case IMAP_ANY:
		status = xr_pool_imap_unordered(pool, t, &iter, &error);
		break;
	}
	EXPECT((f != NULL || iter != NULL) == (status == XR_OK));
	if (f != NULL)
		EXPECT_EQ(xr_future_wait(f, XR_TIMEOUT_NEVER, NULL, NULL),
			XR_OK);
	if (iter != NULL)
		EXPECT_EQ(xr_pool_iter_next(iter, XR_TIMEOUT_NEVER, NULL, NULL),
			XR_OK);
	xr_pool_iter_free(iter);
	xr_future_unref(f);
	return status;
}

struct task_row {
	enum way way;
	struct xr_pool_task t;
	enum xr_status status;
	const char *text;
};

static void
check_tasks(const struct task_row *row, size_t count)
{
	const struct xr_pool_opts o = { .size = sizeof(o),
		.kind = XR_POOL_THREADS,
		.workers = 1,
		.tasks = 8 };
	struct xr_pool *pool;

	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
	for (size_t i = 0; i < count; i++) {
		struct xr_pool_task t = row[i].t;

		if (t.size == 0)
			t.size = sizeof(t);
		memset(&error, 0, sizeof(error));
		expect(i, submit(pool, row[i].way, &t), row[i].status,
			row[i].text);
	}
	for (enum way way = APPLY; way <= IMAP_ANY; way++) {
		memset(&error, 0, sizeof(error));
		expect(way, submit(pool, way, NULL), XR_E_INVAL,
			"struct xr_pool_task: its size");
		memset(&error, 0, sizeof(error));
		expect(way, submit(NULL, way, &row[0].t), XR_E_INVAL,
			"no pool");
	}
	expect(0, xr_pool_apply(pool, NULL, 0, NULL, &error), XR_E_INVAL,
		"the task is NULL");
	xr_pool_free(pool);
}

#define NO_LIST "args is no list"
#define NAMED   "named is a dict, and only of one call"
#define EITHER  "a task has the name of a function, or a function"
#define SIZE    "struct xr_pool_task: its size"
#define NO_CALL "an iterator has no callbacks"

FORKED_TEST(pool_check, a_task_is_rejected_for_each_field_that_is_wrong)
{
	struct xr_value *list = list_of(1), *nil = xr_value_new_nil(), *func,
			*dict = xr_value_new_dict();
	const struct task_row row[] = {
		{ APPLY, { .size = sizeof(struct xr_pool_task) - 1 },
			XR_E_INVAL, SIZE },
		{ IMAP,
			{ .size = sizeof(struct xr_pool_task) - 1,
				.callback = hear },
			XR_E_INVAL, SIZE },
		{ APPLY, { .name = NULL }, XR_E_INVAL, EITHER },
		{ APPLY, { .name = "nothing", .func = nil }, XR_E_INVAL,
			EITHER },
		{ APPLY, { .func = nil }, XR_E_INVAL, "func is of kind nil" },
		{ APPLY, { .name = "nothing" }, XR_OK, NULL },
		{ APPLY, { .name = "nothing", .args = nil }, XR_E_INVAL,
			NO_LIST },
		{ MAP, { .name = "nothing", .args = nil }, XR_E_INVAL,
			NO_LIST },
		{ MAP, { .name = "nothing" }, XR_E_INVAL, NO_LIST },
		{ MAP, { .name = "nothing", .args = list }, XR_OK, NULL },
		{ IMAP, { .name = "nothing" }, XR_E_INVAL, NO_LIST },
		{ APPLY, { .name = "nothing", .named = list }, XR_E_INVAL,
			NAMED },
		{ MAP, { .name = "nothing", .args = list, .named = dict },
			XR_E_INVAL, NAMED },
		{ APPLY, { .name = "nothing", .named = dict }, XR_OK, NULL },
		{ APPLY, { .name = "nothing", .flags = 4 }, XR_E_INVAL,
			"unknown flags 0x4" },
		{ MAP,
			{ .name = "nothing",
				.args = list,
				.flags = XR_POOL_IDEMPOTENT | XR_POOL_CHUNK,
				.chunk = 1 },
			XR_OK, NULL },
		{ MAP, { .name = "nothing", .args = list, .chunk = 1 },
			XR_E_INVAL,
			"a chunk of 1, and no XR_POOL_CHUNK in flags" },
		{ MAP,
			{ .name = "nothing",
				.args = list,
				.flags = XR_POOL_CHUNK },
			XR_E_INVAL, "a chunk of 0: it has one item at least" },
		{ APPLY, { .name = "nothing", .timeout = -2 }, XR_E_INVAL,
			NEGATIVE },
	};

	register_both();
	func = xr_fn_bind("nothing", NULL);
	NEED(func != NULL && dict != NULL);
	check_tasks(row, COUNT(row));
	xr_value_unref(func);
	xr_value_unref(dict);
	xr_value_unref(list);
	xr_value_unref(nil);
}

FORKED_TEST(pool_check, items_callbacks_and_functions_of_a_task_are_checked)
{
	struct xr_value *list = list_of(1);
	const struct task_row row[] = {
		{ STARMAP, { .name = "nothing", .args = list }, XR_E_INVAL,
			"item 0 is of kind i64, and not a list of arguments" },
		{ IMAP, { .name = "nothing", .args = list, .callback = hear },
			XR_E_INVAL, NO_CALL },
		{ IMAP_ANY,
			{ .name = "nothing",
				.args = list,
				.error_callback = hear },
			XR_E_INVAL, NO_CALL },
		{ IMAP, { .name = "nothing", .args = list }, XR_OK, NULL },
		{ IMAP_ANY, { .name = "nothing", .args = list }, XR_OK, NULL },
		{ APPLY, { .name = "unknown" }, XR_E_NO_FUNCTION,
			"unknown is not registered, or takes bytes" },
		{ MAP, { .name = "raw", .args = list }, XR_E_NO_FUNCTION,
			"raw is not registered, or takes bytes" },
		{ APPLY, { .name = "" }, XR_E_INVAL,
			"that is no function's name: 1 to 255 bytes" },
	};

	register_both();
	check_tasks(row, COUNT(row));
	xr_value_unref(list);
}

/* --- pools ----------------------------------------------------------------------------- */

FORKED_TEST(pool_check, calls_without_a_pool_fail)
{
	struct xr_pool_item_info info = { .size = sizeof(info) - 1 };
	struct xr_value *nil = xr_value_new_nil();

	xr_pool_close(NULL);
	xr_pool_free(NULL);
	xr_pool_iter_free(NULL);
	EXPECT_EQ(xr_pool_terminate(NULL, 0, &error), XR_E_INVAL);
	EXPECT_STR(error.text, "no pool");
	EXPECT_EQ(xr_pool_join(NULL, 0, &error), XR_E_INVAL);
	EXPECT_EQ(xr_pool_item_info(NULL, &info), XR_E_INVAL);
	EXPECT(xr_pool_of(nil) == NULL);
	xr_value_unref(nil);
}

static void
of_a_child(struct xr_pool *pool, struct xr_pool_iter *iter)
{
	const struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };
	struct xr_future *f = NULL;

	EXPECT_EQ(xr_pool_apply_async(pool, &t, &f, &error), XR_E_STATE);
	EXPECT_STR(error.text, "after fork() a pool is its parent's");
	EXPECT(f == NULL);
	EXPECT_EQ(xr_pool_terminate(pool, 0, &error), XR_E_STATE);
	EXPECT_EQ(xr_pool_join(pool, 0, &error), XR_E_STATE);
	EXPECT_EQ(xr_pool_iter_next(iter, 0, NULL, &error), XR_E_STATE);
	xr_pool_close(pool);
	EXPECT_EQ(xr_pool_state(pool), XR_POOL_RUNNING);
	xr_pool_iter_free(iter);
	_exit(forked_wrong > 0);
}

FORKED_TEST(pool_check, after_a_fork_a_pool_is_not_the_childs)
{
	const struct xr_pool_opts o = { .size = sizeof(o),
		.kind = XR_POOL_THREADS,
		.workers = 1 };
	struct xr_pool_task t = { .size = sizeof(t), .name = "nothing" };
	struct xr_pool_iter *iter = NULL;
	struct xr_pool *pool;
	int how = -1;
	pid_t pid;

	register_both();
	NEED(xr_pool_new(&o, &pool, NULL) == XR_OK);
	t.args = list_of(2);
	NEED(xr_pool_imap(pool, &t, &iter, NULL) == XR_OK);
	xr_value_unref(t.args);
	pid = fork();
	NEED(pid != -1);
	if (pid == 0)
		of_a_child(pool, iter);
	NEED(waitpid(pid, &how, 0) == pid);
	EXPECT_EQ(how, 0);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(xr_pool_iter_next(iter, XR_TIMEOUT_NEVER, NULL, NULL),
			XR_OK);
	EXPECT_EQ(xr_pool_iter_next(iter, 0, NULL, &error), XR_E_END);
	EXPECT_STR(error.text, "there are no more");
	xr_pool_iter_free(iter);
	xr_pool_free(pool);
}
