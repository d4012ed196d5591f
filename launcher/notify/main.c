/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - xrun-notify: sends web hooks, for --on-event.
 *
 * xrun starts it and gives it lines, "URL JSON", on its standard input, a
 * socket, to whose other end it writes words for a person. Each JSON is posted to
 * its URL: http and https only, no redirects, no proxy, no netrc or cookies, ten
 * seconds, three tries. The events of one URL go out in their order, those of
 * several beside each other, and one that is slow keeps no other waiting: of what
 * it does not take the oldest is dropped, and the next that it gets says how many
 * were. It ends when its input has ended and all is sent.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"

#define TIME_MS    10000L
#define CONNECT_MS 5000L
#define TRIES      3
#define EVENTS_MAX 4096 /* of one URL that wait; more of them are dropped */
#define HEAD       32 /* bytes, for what tell_dropped() puts before an event */
#define REPLY_MAX  (64 << 10)
#define READ_SIZE  (16 << 10)
#define POLL_MS    1000
#define HOST_MAX \
	253 /* bytes of a host that are shown: the longest name of DNS */

struct event {
	STAILQ_ENTRY(event) list;
	size_t at;   /* of the JSON, in text */
	char text[]; /* room for a first member, and the JSON */
};

struct hook {
	LIST_ENTRY(hook) list;
	STAILQ_HEAD(, event) events;
	unsigned count, dropped; /* of events */
	char *url;
	CURL *easy; /* of the first event, while it is under way; or NULL */
	struct curl_slist *headers;
	unsigned tries;
	size_t reply;    /* bytes of the answer, which nobody reads */
	int64_t next_ns; /* clock_now(); not before */
	bool told;       /* that it does not work */
};

static LIST_HEAD(, hook) hooks;
static unsigned held;
static struct buf in;
static CURLM *multi;

/* --- words ---------------------------------------------------------------- */

/* What is behind the host may be a secret. */
static void
say(struct hook *h, const char *what)
{
	const char *host = strstr(h->url, "://") + 3;
	size_t len = strcspn(host, "/?#");
	const char *at = memchr(host, '@', len);
	struct buf line = { 0 };

	if (at != NULL) {
		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	if (len > HOST_MAX)
		len = HOST_MAX;
	if (h->told)
		return;
	h->told = true;
	buf_fmt(&line, "%.*s%.*s: %s\n",
		(int)(strstr(h->url, "//") - h->url) + 2, h->url, (int)len,
		host, what);
	if (line.bad == XR_OK)
		send(STDIN_FILENO, line.data, line.len,
			MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_fini(&line);
}

/* --- sending -------------------------------------------------------------- */

static size_t
pass_over(char *data, size_t size, size_t n, void *ctx)
{
	struct hook *h = ctx;

	(void)data;
	h->reply += size * n;
	return h->reply > REPLY_MAX ? 0 : size * n; /* 0: enough */
}

/* The first event tells of those that were not sent; xrun counts its own. */
static void
tell_dropped(struct hook *h, struct event *e)
{
	char member[HEAD];
	int len = snprintf(member, sizeof(member), "{\"dropped\":%u,",
		h->dropped);

	if (h->dropped == 0 || e->at != HEAD ||
		strstr(e->text + HEAD, "\"dropped\":") != NULL)
		return;
	e->at = HEAD + 1 - (size_t)len;
	memcpy(e->text + e->at, member, (size_t)len);
	h->dropped = 0;
}

static bool
begin(struct hook *h)
{
	struct event *e = STAILQ_FIRST(&h->events);
	CURL *c = curl_easy_init();

	if (c == NULL)
		return false;
	tell_dropped(h, e);
	h->reply = 0;
	curl_easy_setopt(c, CURLOPT_URL, h->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TIME_MS);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "xrun/" XRUN_VERSION);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, e->text + e->at);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, pass_over);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_PRIVATE, h);
	if (curl_multi_add_handle(multi, c) != CURLM_OK) {
		curl_easy_cleanup(c);
		return false;
	}
	h->easy = c;
	return true;
}

static void
forget_first(struct hook *h)
{
	struct event *e = STAILQ_FIRST(&h->events);

	STAILQ_REMOVE_HEAD(&h->events, list);
	free(e);
	h->count--;
	held--;
	h->tries = 0;
	h->next_ns = 0;
}

/* Returns true if the same request may succeed later. */
static bool
may_pass(CURLcode code, long status)
{
	return code != CURLE_OK || status >= 500 || status == 408 ||
		status == 429;
}

static void
on_over(struct hook *h, CURLcode code)
{
	char text[200];
	long status = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_multi_remove_handle(multi, h->easy);
	curl_easy_cleanup(h->easy);
	h->easy = NULL;
	/* An answer that was longer than anybody wants is an answer. */
	if (code == CURLE_WRITE_ERROR && status != 0)
		code = CURLE_OK;
	if (code == CURLE_OK && status >= 200 && status < 300) {
		forget_first(h);
		return;
	}
	if (may_pass(code, status) && ++h->tries < TRIES) {
		h->next_ns = clock_now() + (2 * h->tries - 1) * NS_PER_S;
		return;
	}
	if (code != CURLE_OK)
		snprintf(text, sizeof(text), "%s", curl_easy_strerror(code));
	else
		snprintf(text, sizeof(text), "answered %ld%s", status,
			status >= 300 && status < 400 ?
				"; redirects are not followed" :
				"");
	say(h, text);
	forget_first(h);
}

/* Returns true if a transfer has ended. */
static bool
reap(void)
{
	struct hook *h;
	CURLMsg *m;
	CURLcode code;
	bool any = false;
	int left;

	while ((m = curl_multi_info_read(multi, &left)) != NULL) {
		if (m->msg != CURLMSG_DONE)
			continue;
		code = m->data.result;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE,
			(char **)&h);
		on_over(h, code);
		any = true;
	}
	return any;
}

/* How long till the next try, in ms. */
static int
begin_due(void)
{
	int64_t now = clock_now(), soonest = now + POLL_MS * NS_PER_MS;
	struct hook *h;

	LIST_FOREACH(h, &hooks, list)
	{
		if (h->easy != NULL || STAILQ_EMPTY(&h->events))
			continue;
		if (h->next_ns > now) {
			soonest = h->next_ns < soonest ? h->next_ns : soonest;
		} else if (!begin(h)) {
			say(h, "no memory");
			forget_first(h);
		}
	}
	return (int)((soonest - now) / NS_PER_MS) + 1;
}

/* --- what there is to send ------------------------------------------------ */

static struct hook *
hook_of(const char *url)
{
	struct hook *h;

	LIST_FOREACH(h, &hooks, list)
	if (strcmp(h->url, url) == 0)
		return h;
	h = calloc(1, sizeof(*h));
	if (h == NULL || (h->url = strdup(url)) == NULL) {
		free(h);
		return NULL;
	}
	STAILQ_INIT(&h->events);
	h->headers =
		curl_slist_append(curl_slist_append(NULL,
					  "Content-Type: application/json"),
			"Expect:");
	LIST_INSERT_HEAD(&hooks, h, list);
	return h;
}

/* The end of a job is told, whatever came before it: the oldest makes room. */
static void
drop_one(struct hook *h)
{
	struct event *e = STAILQ_FIRST(&h->events);

	/* It is under way, or its next try is. */
	e = STAILQ_NEXT(e, list);
	STAILQ_REMOVE(&h->events, e, event, list);
	free(e);
	h->count--;
	held--;
	h->dropped++;
	say(h, "does not take events as fast as they come");
}

static void
add(struct hook *h, const char *body)
{
	const size_t len = strlen(body);
	struct event *e = malloc(sizeof(*e) + HEAD + len + 1);

	if (e == NULL) {
		h->dropped++;
		return;
	}
	e->at = HEAD;
	memcpy(e->text + HEAD, body, len + 1);
	STAILQ_INSERT_TAIL(&h->events, e, list);
	h->count++;
	held++;
	if (h->count > EVENTS_MAX)
		drop_one(h);
}

static void
take(char *line)
{
	char *body = strchr(line, ' ');
	struct hook *h;

	if (body == NULL)
		return;
	*body++ = '\0';
	h = hook_of(line);
	if (h != NULL)
		add(h, body);
}

/* False: its end. */
static bool
read_more(void)
{
	char *room = buf_room(&in, READ_SIZE), *end, *at;
	ssize_t n;

	if (room == NULL)
		return false;
	in.len -= READ_SIZE;
	n = recv(STDIN_FILENO, room, READ_SIZE, MSG_DONTWAIT);
	if (n <= 0)
		return n != 0;
	in.len += (size_t)n;
	at = in.data;
	while ((end = memchr(at, '\n', in.len - (size_t)(at - in.data))) !=
		NULL) {
		*end = '\0';
		take(at);
		at = end + 1;
	}
	in.len -= (size_t)(at - in.data);
	memmove(in.data, at, in.len);
	return true;
}

int
main(void)
{
	struct curl_waitfd input = { .fd = STDIN_FILENO,
		.events = CURL_WAIT_POLLIN };
	bool more = true;
	int running;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
		(multi = curl_multi_init()) == NULL)
		return EXIT_FAILURE;
	while (more || held > 0) {
		int ms = begin_due();

		if (curl_multi_perform(multi, &running) != CURLM_OK)
			return EXIT_FAILURE;
		/* What is over makes room for what comes next. */
		if (reap())
			continue;
		input.revents = 0;
		curl_multi_poll(multi, &input, more, ms, NULL);
		if (input.revents != 0)
			more = read_more();
	}
	return EXIT_SUCCESS;
}
