/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - see fault.h. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"

#define FAULTS_MAX 16
#define WORD_MAX   64

enum action { DELAY, KILL, STOP, FAIL };

struct armed {
	enum fault_point at;
	enum action action;
	int64_t delay; /* ns */
	int sys;
	uint32_t rank; /* FAULT_ANY: each */
	uint32_t nth;  /* 0: each time */
	uint32_t seen; /* atomic: times, so far */
};

static struct armed armed[FAULTS_MAX];
static int armed_count;
bool fault_armed;

static const struct {
	const char *name, *where;
	bool fails;
} points[] = {
#define P(id, text, at, may) { .name = text, .where = at, .fails = may },
	FAULT_POINTS(P)
#undef P
};

static const struct {
	const char *name;
	int sys;
} errnos[] = {
	{ "EACCES", EACCES },
	{ "EAGAIN", EAGAIN },
	{ "EDQUOT", EDQUOT },
	{ "EINTR", EINTR },
	{ "EINVAL", EINVAL },
	{ "EIO", EIO },
	{ "EMFILE", EMFILE },
	{ "ENFILE", ENFILE },
	{ "ENOENT", ENOENT },
	{ "ENOMEM", ENOMEM },
	{ "ENOSPC", ENOSPC },
	{ "ENOSYS", ENOSYS },
	{ "EPERM", EPERM },
	{ "EPIPE", EPIPE },
	{ "EROFS", EROFS },
	{ "ESTALE", ESTALE },
};

const char *
fault_name(enum fault_point at)
{
	return points[at].name;
}

const char *
fault_where(enum fault_point at)
{
	return points[at].where;
}

bool
fault_fails(enum fault_point at)
{
	return points[at].fails;
}

static void
wait_for(int64_t ns)
{
	struct timespec left = {
		.tv_sec = ns / NS_PER_S,
		.tv_nsec = ns % NS_PER_S,
	};

	while (nanosleep(&left, &left) == -1 && errno == EINTR)
		continue;
}

static int
act(const struct armed *a)
{
	switch (a->action) {
	case DELAY:
		wait_for(a->delay);
		break;
	case KILL:
		kill(getpid(), SIGKILL);
		break;
	case STOP:
		kill(getpid(), SIGSTOP);
		break;
	case FAIL:
		return a->sys;
	}
	return 0;
}

int
fault_hit(enum fault_point at, uint32_t rank)
{
	int was = errno, sys = 0;

	for (int i = 0; i < armed_count; i++) {
		struct armed *a = &armed[i];

		if (a->at != at || (a->rank != FAULT_ANY && a->rank != rank))
			continue;
		if (__atomic_add_fetch(&a->seen, 1, __ATOMIC_RELAXED) !=
				a->nth &&
			a->nth != 0)
			continue;
		sys = act(a);
		if (sys != 0)
			break;
	}
	errno = sys != 0 ? sys : was;
	return sys;
}

/* The word up to one of @ends, and *@p behind it; false if it is too long. */
static bool
next_word(const char **p, const char *ends, char word[WORD_MAX])
{
	size_t len = strcspn(*p, ends);

	if (len >= WORD_MAX)
		return false;
	memcpy(word, *p, len);
	word[len] = '\0';
	*p += len;
	return true;
}

static bool
read_point(const char *word, struct armed *a)
{
	for (int i = 0; i < FAULT_COUNT; i++)
		if (strcmp(points[i].name, word) == 0) {
			a->at = (enum fault_point)i;
			return true;
		}
	return false;
}

static bool
read_number(const char *text, uint32_t *out)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || n >= UINT32_MAX)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool
read_time(const char *text, int64_t *out)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = { { "us", NS_PER_US }, { "ms", NS_PER_MS },
		{ "s", NS_PER_S } };
	size_t digits = strspn(text, "0123456789");
	char number[16] = "";
	uint32_t n;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	if (!read_number(number, &n))
		return false;
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].unit, text + digits) == 0) {
			*out = n * units[i].ns;
			return true;
		}
	return false;
}

static bool
read_errno(const char *word, int *sys)
{
	for (unsigned i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (strcmp(errnos[i].name, word) == 0) {
			*sys = errnos[i].sys;
			return true;
		}
	return false;
}

static bool
read_action(const char *word, struct armed *a)
{
	if (strcmp(word, "kill") == 0)
		a->action = KILL;
	else if (strcmp(word, "stop") == 0)
		a->action = STOP;
	else if (strncmp(word, "delay=", 6) == 0)
		a->action = DELAY;
	else if (strncmp(word, "fail=", 5) == 0)
		a->action = FAIL;
	else
		return false;
	if (a->action == DELAY)
		return read_time(word + 6, &a->delay);
	if (a->action == FAIL)
		return points[a->at].fails && read_errno(word + 5, &a->sys);
	return true;
}

static bool
read_limit(const char *word, struct armed *a)
{
	if (strncmp(word, "rank=", 5) == 0)
		return read_number(word + 5, &a->rank) && a->rank != FAULT_ANY;
	if (strncmp(word, "nth=", 4) == 0)
		return read_number(word + 4, &a->nth) && a->nth != 0;
	return false;
}

/* One fault; *@p is at the comma behind it, or at the end. */
static enum xr_status
read_fault(const char **p, struct armed *a, struct xr_error *err)
{
	char word[WORD_MAX] = "";

	*a = (struct armed){ .rank = FAULT_ANY };
	if (!next_word(p, ":,;", word) || !read_point(word, a))
		return fail(err, XR_E_INVAL,
			"XRUN_FAULT: '%.*s' is no point; man xrun-hacking lists them",
			WORD_MAX, word);
	if (*(*p)++ != ':' || !next_word(p, ",;", word) ||
		!read_action(word, a))
		return fail(err, XR_E_INVAL,
			"XRUN_FAULT: %s: '%.*s' is not what can happen there: delay=TIME, kill, stop%s",
			points[a->at].name, WORD_MAX, word,
			points[a->at].fails ? ", fail=ERRNO" : "");
	while (**p == ';') {
		++*p;
		if (!next_word(p, ",;", word) || !read_limit(word, a))
			return fail(err, XR_E_INVAL,
				"XRUN_FAULT: %s: '%.*s' is not rank=N or nth=N",
				points[a->at].name, WORD_MAX, word);
	}
	return XR_OK;
}

enum xr_status
fault_arm(const char *text, struct xr_error *err)
{
	struct armed found[FAULTS_MAX];
	const char *p = text;
	enum xr_status status;
	int n = 0;

	for (;; p++) {
		if (n == FAULTS_MAX)
			return fail(err, XR_E_INVAL,
				"XRUN_FAULT: more than %d faults", FAULTS_MAX);
		status = read_fault(&p, &found[n], err);
		if (status != XR_OK)
			return status;
		n++;
		if (*p == '\0')
			break;
	}
	memcpy(armed, found, (size_t)n * sizeof(found[0]));
	armed_count = n;
	fault_armed = n > 0;
	return XR_OK;
}
