/* SPDX-License-Identifier: Apache-2.0 */
/* test_last_trace.c - where a failure was raised, and the last words of a rank
 * (worker/job/trace.c, worker/job/last.c). What backtrace(3) finds is the test's. */
#include <errno.h>
#include <execinfo.h>
#include <link.h>

#include <sys/mman.h>

#include "base/status.h"
#include "tests/unit/forked.h"
#include "worker/job/last.h"
#include "worker/job/trace.h"

#define FRAME __attribute__((noinline))

int __real_backtrace(void **at, int size);
int __wrap_backtrace(void **at, int size);

static void *more[4]; /* come after those of the failure */
static int more_count = -1;
static bool lacks_fail; /* only those are found */
static unsigned asked;

FRAME static void
raise_here(enum xr_status status)
{
	status_on_fail(status);
	__asm__ volatile("" ::: "memory");
}

/* Of the frames that are there, those up to raise_here() stay, if it is one. */
int
__wrap_backtrace(void **at, int size)
{
	int n = 0;

	asked++;
	errno = EDOM;
	EXPECT_EQ(size, 22);
	if (more_count == -1)
		return __real_backtrace(at, size);
	if (!lacks_fail) {
		int all = __real_backtrace(at, size);

		while (n < all &&
			(uintptr_t)at[n] - (uintptr_t)raise_here >= 200)
			n++;
		if (n++ == all)
			return all;
	}
	for (int i = 0; i < more_count; i++)
		at[n++] = more[i];
	return n;
}

/* Where a call at the first byte of these returns to. */
#define BEHIND(function) ((char *)(uintptr_t)(function) + 1)

FRAME static int
one_function(int x)
{
	__asm__ volatile("" ::: "memory");
	return x + 1;
}

FRAME static int
other_function(int x)
{
	__asm__ volatile("" ::: "memory");
	return x + 2;
}

static int
first_load(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1;
}

/* The line of frame @number, where @function begins. */
static const char *
line_of(unsigned number, const char *name, int (*function)(int))
{
	static char line[4][128];
	char *out = line[number % 4];
	uintptr_t base = 0;

	dl_iterate_phdr(first_load, &base);
	snprintf(out, sizeof(line[0]),
		"  #%-2u %s+0x0 (test_last_trace 0x%llx)\n", number, name,
		(unsigned long long)((uintptr_t)function - base));
	return out;
}

TestSuite(last_trace, .timeout = 60);

/* --- the text of a trace ----------------------------------------------------- */

FORKED_TEST(last_trace, a_frame_has_its_function_its_file_and_its_address)
{
	struct trace t = { .at = { BEHIND(other_function), (void *)0x11,
				   BEHIND(one_function) },
		.count = 3 };
	char out[400], want[400];
	size_t len;

	snprintf(want, sizeof(want), "%s  #1  ? (? 0x10)\n%s",
		line_of(0, "other_function", other_function),
		line_of(2, "one_function", one_function));
	len = trace_text(&t, 0, out, sizeof(out));
	EXPECT_EQ(len, strlen(want));
	EXPECT_STR(out, want);
	EXPECT_EQ(trace_text(&t, 2, out, sizeof(out)),
		strlen(line_of(0, "one_function", one_function)));
	EXPECT_STR(out, line_of(0, "one_function", one_function));
	for (uint32_t skip = 3; skip < 5; skip++) {
		out[0] = 'o';
		EXPECT_EQ(trace_text(&t, skip, out, sizeof(out)), 0);
		EXPECT_STR(out, "");
	}
}

#define LAST_LINE strlen("  #15 ? (? 0x111)\n")

FORKED_TEST(last_trace, only_whole_lines_and_16_are_there)
{
	struct trace t = { .count = 22 };
	char out[800], want[800] = "";
	size_t len = 0;

	for (unsigned i = 0; i < 22; i++)
		t.at[i] = (void *)(uintptr_t)(0x101 + i);
	for (unsigned i = 0; i < 16; i++)
		len += (size_t)snprintf(want + len, sizeof(want) - len,
			"  #%-2u ? (? 0x%x)\n", i, 0x102 + i);
	EXPECT_EQ(trace_text(&t, 2, out, sizeof(out)), len);
	EXPECT_STR(out, want);
	for (size_t cap = len - 1; cap <= len + 1; cap++) {
		memset(out, 'o', sizeof(out));
		want[cap > len ? len : len - LAST_LINE] = '\0';
		EXPECT_EQ(trace_text(&t, 2, out, cap), strlen(want));
		EXPECT_STR(out, want);
		EXPECT_EQ(out[cap], 'o');
		want[len - LAST_LINE] = ' ';
	}
}

FORKED_TEST(last_trace, a_trace_begins_with_the_caller_or_with_all_there_is)
{
	struct trace t;

	for (int n = 0; n < 4; n++) {
		memset(&t, 0, sizeof(t));
		lacks_fail = true;
		more_count = n;
		for (int i = 0; i < 4; i++)
			more[i] = (void *)(uintptr_t)(0x100 + i);
		errno = ENOENT;
		trace_take(&t);
		EXPECT_EQ(errno, ENOENT);
		EXPECT_EQ(t.count, n);
		for (int i = 0; i < n; i++)
			EXPECT(t.at[i] == more[i]);
	}
	more_count = -1;
	trace_take(&t);
	EXPECT(t.count > 1 && t.count < 22);
	EXPECT((uintptr_t)t.at[0] >
		(uintptr_t)
			forked_a_trace_begins_with_the_caller_or_with_all_there_is);
}

/* --- the place of a failure --------------------------------------------------- */

static void
expect_place(enum xr_status status, const char *want)
{
	char out[LAST_MAX];

	EXPECT_EQ(last_place(status, out, sizeof(out)), strlen(out));
	EXPECT_STR(out, want);
}

/* This place, which is known by its beginning. */
FRAME static void
expect_here(enum xr_status status)
{
	char out[LAST_MAX];

	more_count = -1;
	EXPECT(last_place(status, out, sizeof(out)) > 0);
	out[19] = '\0';
	EXPECT_STR(out, "  #0  expect_here+0");
}

FORKED_TEST(last_trace, the_place_is_where_the_failing_function_was_called)
{
	EXPECT(!last_keep(true));
	more[0] = BEHIND(one_function);
	more[1] = BEHIND(other_function);
	more_count = 1;
	raise_here(XR_E_STATE);
	expect_place(XR_E_STATE, line_of(0, "one_function", one_function));
	expect_here(XR_E_RANGE);
	more[0] = BEHIND(xr_error_set); /* it is part of the failing */
	more[1] = BEHIND(one_function);
	more_count = 2;
	raise_here(XR_E_RANGE);
	expect_place(XR_E_RANGE, line_of(0, "one_function", one_function));
	expect_here(XR_E_STATE);
	lacks_fail = true;
	more[0] = BEHIND(other_function);
	more_count = 1;
	raise_here(XR_E_STATE);
	expect_place(XR_E_STATE, line_of(0, "other_function", other_function));
	lacks_fail = false;
	more_count = 0; /* nobody called it */
	raise_here(XR_E_STATE);
	expect_here(XR_E_STATE);
}

FORKED_TEST(last_trace, no_place_is_kept_unless_it_is_asked_for)
{
	EXPECT(!last_keep(true));
	EXPECT(last_keep(false));
	EXPECT(!last_keep(false));
	more_count = 1;
	more[0] = BEHIND(one_function);
	asked = 0;
	raise_here(XR_E_STATE);
	EXPECT_EQ(asked, 0);
	expect_here(XR_E_STATE);
	EXPECT_EQ(asked, 1);
}

/* --- the last words ------------------------------------------------------------- */

/* Standard output and error are a file, which is read here; the place is @place. */
static void
expect_words(enum xr_status status, struct xr_error *err, const char *want)
{
	const uint32_t ordinal = 7;
	char got[LAST_MAX] = "", all[LAST_MAX];
	int fd = memfd_create("words", MFD_CLOEXEC);

	NEED(dup2(fd, STDOUT_FILENO) != -1 && dup2(fd, STDERR_FILENO) != -1);
	printf("out;");
	fprintf(stderr, "err;");
	more[0] = BEHIND(one_function);
	more_count = 1;
	raise_here(status);
	last_words(status, &ordinal, err);
	snprintf(all, sizeof(all), "out;err;%s%s", want,
		line_of(0, "one_function", one_function));
	EXPECT(pread(fd, got, sizeof(got) - 1, 0) > 0);
	EXPECT_STR(got, all);
	close(fd);
}

static void
have_buffers(void)
{
	static char room[1024];

	setvbuf(stdout, NULL, _IOFBF, 1024);
	setvbuf(stderr, room, _IOFBF, sizeof(room));
}

FORKED_TEST(last_trace, last_words_come_after_what_was_printed)
{
	struct xr_error err = { .text = "x" };
	struct {
		struct xr_error err;
		char behind[8];
	} full;
	char want[sizeof(full) + 64];

	have_buffers();
	setenv("XRUN_DEVICE", "d:1", 1);
	last_keep(true);
	expect_words(XR_E_STATE, &err, "d:1: rank 7: x\n");
	err = (struct xr_error){ .text = "" };
	snprintf(want, sizeof(want), "d:1: rank 7: %s\n",
		xr_status_text(XR_E_TIMEOUT));
	expect_words(XR_E_TIMEOUT, &err, want);
	EXPECT_STR(err.text, xr_status_text(XR_E_TIMEOUT));
	memset(&full, 0, sizeof(full));
	memset(full.err.text, 't', sizeof(full.err.text));
	memset(full.behind, 'b', sizeof(full.behind));
	snprintf(want, sizeof(want), "d:1: rank 7: %.*s\n",
		(int)sizeof(full.err.text) - 1, full.err.text);
	expect_words(XR_E_STATE, &full.err, want);
	EXPECT_EQ(full.err.text[sizeof(full.err.text) - 1], 0);
	EXPECT_EQ(full.behind[0], 'b');
}

FORKED_TEST(last_trace, last_words_begin_with_the_device)
{
	struct xr_error err = { .text = "x" };

	last_keep(true);
	unsetenv("XRUN_DEVICE");
	setenv("XRT_MULTI_PROCESSING_DEVICE", "", 1);
	have_buffers();
	expect_words(XR_E_STATE, &err, "cpu: rank 7: x\n");
	setenv("XRT_MULTI_PROCESSING_DEVICE", "T", 1);
	expect_words(XR_E_STATE, &err, "T: rank 7: x\n");
	setenv("XRUN_DEVICE", "", 1);
	expect_words(XR_E_STATE, &err, "T: rank 7: x\n");
	setenv("XRUN_DEVICE", "d", 1);
	expect_words(XR_E_STATE, &err, "d: rank 7: x\n");
	unsetenv("XRUN_DEVICE");
	unsetenv("XRT_MULTI_PROCESSING_DEVICE");
	expect_words(XR_E_STATE, &err, "cpu: rank 7: x\n");
}
