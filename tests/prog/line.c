/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - see line.h. Made to cost little: it runs inside benchmarks. */
#include <stdlib.h>
#include <string.h>

#include "tests/prog/line.h"
#include "tests/prog/prog.h"

#define CHECK_LEN 8

static const char hex[] = "0123456789abcdef";

static uint64_t
hash(uint64_t h, const char *at, size_t len)
{
	uint64_t word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	word = len;
	memcpy((char *)&word + 1, at, len);
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

uint64_t
line_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t
put_num(char *out, uint64_t value)
{
	char digits[20];
	size_t n = 0, i;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	for (i = 0; i < n; i++)
		out[i] = digits[n - 1 - i];
	return n;
}

static void
put_check(char *out, uint64_t head, uint64_t fill)
{
	uint32_t check = (uint32_t)((head ^ fill) >> 32);
	int i;

	for (i = 0; i < CHECK_LEN; i++)
		out[i] = hex[check >> (28 - 4 * i) & 15];
}

void
line_init(struct line_maker *m, int64_t rank, int stream, size_t size,
	uint64_t seed)
{
	size_t room = seed != 0 ? LINE_WILD_MAX : size;
	size_t i;

	memset(m, 0, sizeof(*m));
	m->rank = rank < 0 ? 0 : rank;
	m->stream = stream;
	m->size = size;
	m->random = seed * 1000003 + (uint64_t)m->rank * 4 + (uint64_t)stream;
	if (seed == 0)
		m->random = 0;
	m->fill = malloc(room + 1);
	if (m->fill == NULL)
		prog_die(0, "no memory for a line of %zu bytes", room);
	for (i = 0; i < room; i++)
		m->fill[i] = (char)('a' + i % 26);
	m->fill_hash = hash(1, m->fill, 0);
}

void
line_fini(struct line_maker *m)
{
	free(m->fill);
	m->fill = NULL;
}

static void
set_fill_len(struct line_maker *m, size_t len)
{
	if (len == m->fill_len)
		return;
	m->fill_len = len;
	m->fill_hash = hash(1, m->fill, len);
}

/* Mostly short; one in 64 is up to the longest. */
static void
wild_fill(struct line_maker *m)
{
	uint64_t r = line_random(&m->random);
	size_t len = r % 64 == 0 ? (r >> 8) % LINE_WILD_MAX : (r >> 8) % 300;
	size_t i;

	for (i = 0; i < len; i++) {
		r = line_random(&m->random);
		m->fill[i] = (char)(r >> 32);
		if (m->fill[i] == '\n' || m->fill[i] == '\r')
			m->fill[i] = '\0';
	}
	m->fill_len = len;
	m->fill_hash = hash(1, m->fill, len);
}

size_t
line_make(struct line_maker *m, uint64_t seq, char *out)
{
	size_t n, used;

	n = put_num(out, (uint64_t)m->rank);
	out[n++] = ':';
	n += put_num(out + n, (uint64_t)m->stream);
	out[n++] = ':';
	n += put_num(out + n, seq);
	out[n++] = ':';
	used = n + CHECK_LEN + 2;
	if (m->random != 0)
		wild_fill(m);
	else
		set_fill_len(m, m->size > used ? m->size - used : 0);
	put_check(out + n, hash(0, out, n), m->fill_hash);
	n += CHECK_LEN;
	out[n++] = ' ';
	memcpy(out + n, m->fill, m->fill_len);
	n += m->fill_len;
	out[n++] = '\n';
	return n;
}

/* A number and the ':' behind it; NULL if it is not there. */
static const char *
take_num(const char *at, const char *end, uint64_t *value)
{
	const char *p = at;

	*value = 0;
	while (p < end && *p >= '0' && *p <= '9' && p - at < 19)
		*value = *value * 10 + (uint64_t)(*p++ - '0');
	return p > at && p < end && *p == ':' ? p + 1 : NULL;
}

bool
line_read(const char *at, size_t len, struct line_seen *seen)
{
	const char *end = at + len, *p;
	uint64_t rank, stream;
	char check[CHECK_LEN];
	size_t head;

	p = take_num(at, end, &rank);
	if (p != NULL)
		p = take_num(p, end, &stream);
	if (p != NULL)
		p = take_num(p, end, &seen->seq);
	if (p == NULL || end - p < CHECK_LEN + 1 || p[CHECK_LEN] != ' ')
		return false;
	if (stream != 1 && stream != 2)
		return false;
	head = (size_t)(p - at);
	put_check(check, hash(0, at, head),
		hash(1, p + CHECK_LEN + 1, len - head - CHECK_LEN - 1));
	seen->rank = (int64_t)rank;
	seen->stream = (int)stream;
	return memcmp(check, p, CHECK_LEN) == 0;
}
