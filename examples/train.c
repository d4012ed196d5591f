/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - learning to read digits on many ranks, and failing on request.
 *
 * Data-parallel training as everybody does it: each rank has its share of the
 * pictures, computes the gradient of its part of a batch, the gradients are
 * added up over the ranks, and all take the same step. The size of the batch
 * does not depend on the number of ranks: one learns as well as ten do.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xrun/job.h>

#include "digits.h"
#include "mesh.h"
#include "net.h"

enum {
	IMAGES = 1797, /* to learn from; as many as the UCI set has */
	TESTS = 500,   /* to be asked about, never learned from */
	BATCH = 32,    /* pictures a step, over all ranks */
	EPISODE = 3,   /* the epoch in which somebody crashes or hangs */
};

static const float rate = 0.006f, momentum = 0.9f;

/* The gradient, and behind it what else is added up in the same message. */
enum { SUM_LOSS = NET_WEIGHTS, SUM_SEEN, SUM_ALL };

struct train {
	struct mesh mesh;
	struct digits learn, test;
	float weight[NET_WEIGHTS], speed[NET_WEIGHTS], sum[SUM_ALL];
	int epochs;
	int exact;             /* losses with all digits */
	int crash, hang, slow; /* the rank that does, or -1 */
};

static const char help[] =
	"usage: train [--epochs N] [--exact] [--crash R] [--hang R] [--slow R]\n"
	"\n"
	"Learns to read 8 x 8 pictures of digits, on as many ranks as it is\n"
	"started with: xrun -n 4 train\n"
	"\n"
	"  --epochs N   go through the pictures N times (8)\n"
	"  --exact      print losses with all of their digits\n"
	"  --crash R    rank R reads behind its pictures in epoch 3\n"
	"  --hang R     rank R stops taking part in epoch 3\n"
	"  --slow R     rank R works three times as long as the others\n";

static int
parse_number(const char *name, const char *text, int min)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < min || n > 1000000) {
		fprintf(stderr, "train: --%s: '%s' is not a number from %d\n",
			name, text, min);
		exit(2);
	}
	return (int)n;
}

static void
parse(struct train *t, int argc, char **argv)
{
	static const struct option options[] = {
		{ "epochs", required_argument, NULL, 'e' },
		{ "exact", no_argument, NULL, 'x' },
		{ "crash", required_argument, NULL, 'c' },
		{ "hang", required_argument, NULL, 'h' },
		{ "slow", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, '?' + 256 },
		{ 0 },
	};
	int c;

	t->epochs = 8;
	t->crash = t->hang = t->slow = -1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'e':
			t->epochs = parse_number("epochs", optarg, 1);
			break;
		case 'x':
			t->exact = 1;
			break;
		case 'c':
			t->crash = parse_number("crash", optarg, 0);
			break;
		case 'h':
			t->hang = parse_number("hang", optarg, 0);
			break;
		case 's':
			t->slow = parse_number("slow", optarg, 0);
			break;
		case '?':
			fprintf(stderr, "try: train --help\n");
			exit(2);
		default:
			fputs(help, stdout);
			exit(0);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "train: '%s'? It takes options only\n",
			argv[optind]);
		exit(2);
	}
}

/* The bug: the last picture has number IMAGES - 1, and the page behind it is
 * nobody's. */
static void
read_behind(const struct digits *set)
{
	const volatile uint8_t *sample = set->image[set->count];

	fprintf(stderr, "train.c:%d: reading sample %d of %d\n", __LINE__,
		set->count, set->count);
	exit(*sample);
}

/* What the tour of xrun asks for, in the middle of an epoch. */
static void
show_episode(const struct train *t, int epoch, float loss)
{
	int when = t->epochs < EPISODE ? t->epochs : EPISODE;

	if (epoch % EPISODE == 0 || epoch == when)
		fprintf(stderr, "epoch %d loss %.3f\n", epoch, loss);
	if (epoch == when && t->mesh.rank == t->crash)
		read_behind(&t->learn);
	while (epoch == when && t->mesh.rank == t->hang)
		pause();
}

/* A picture as it is, and once more with other smudges. */
static void
learn_one(struct train *t, int n, uint64_t random)
{
	uint8_t again[DIGITS_PIXELS];
	int label = t->learn.label[n];

	digits_smudge(t->learn.image[n], &random, again);
	t->sum[SUM_LOSS] +=
		net_learn(t->weight, t->learn.image[n], label, t->sum);
	t->sum[SUM_LOSS] += net_learn(t->weight, again, label, t->sum);
	t->sum[SUM_SEEN] += 2;
}

/* The gradient of this rank's part of a batch, and its loss, in t->sum. Which pictures
 * make a batch does not depend on how many ranks share it. */
static void
learn_part(struct train *t, int step)
{
	int i;

	memset(t->sum, 0, sizeof(t->sum));
	for (i = t->mesh.rank; i < BATCH; i += t->mesh.size)
		learn_one(t, (step * BATCH + i) % IMAGES,
			(uint64_t)(step * BATCH + i));
}

static void
take_step(struct train *t)
{
	float scale = rate / t->sum[SUM_SEEN];
	int i;

	for (i = 0; i < NET_WEIGHTS; i++) {
		t->speed[i] = momentum * t->speed[i] - scale * t->sum[i];
		t->weight[i] += t->speed[i];
	}
}

/* Returns the mean loss over the pictures of all ranks. */
static float
learn_epoch(struct train *t, int epoch)
{
	int steps = (IMAGES + BATCH - 1) / BATCH, step, i;
	int times = t->mesh.rank == t->slow ? 3 : 1;
	float loss = 0, seen = 0, own_loss = 0, own_seen = 0;

	for (step = 0; step < steps; step++) {
		for (i = 0; i < times; i++)
			learn_part(t, (epoch - 1) * steps + step);
		own_loss += t->sum[SUM_LOSS];
		own_seen += t->sum[SUM_SEEN];
		if (step == steps / 2 && own_seen > 0)
			show_episode(t, epoch, own_loss / own_seen);
		mesh_sum(&t->mesh, t->sum, SUM_ALL);
		loss += t->sum[SUM_LOSS];
		seen += t->sum[SUM_SEEN];
		take_step(t);
	}
	return loss / seen;
}

/* Each rank asks about its share of the pictures nobody has learned. */
static float
examine(struct train *t)
{
	float right = 0;
	int i;

	for (i = t->mesh.rank; i < TESTS; i += t->mesh.size)
		right += net_answer(t->weight, t->test.image[i]) ==
			t->test.label[i];
	mesh_sum(&t->mesh, &right, 1);
	return right / TESTS;
}

/* For xrun ps. */
static void
tell(const struct train *t, int epoch, float loss)
{
	const struct xr_metric metric = { "loss", (double)loss };
	const struct xr_progress progress = { .size = sizeof(progress),
		.step = epoch,
		.total = t->epochs,
		.metric_count = 1,
		.metrics = &metric };

	xr_job_progress(&progress);
}

int
main(int argc, char **argv)
{
	static struct train t;
	float loss, accuracy;
	int epoch;

	parse(&t, argc, argv);
	mesh_open(&t.mesh);
	if (digits_make(&t.learn, 0, IMAGES) != 0 ||
		digits_make(&t.test, IMAGES, TESTS) != 0) {
		fprintf(stderr, "train: out of memory\n");
		return 1;
	}
	net_init(t.weight, 1);
	printf("digits: %d images, %d a rank\n", IMAGES,
		(IMAGES + t.mesh.size - 1) / t.mesh.size);
	for (epoch = 1; epoch <= t.epochs; epoch++) {
		loss = learn_epoch(&t, epoch);
		accuracy = examine(&t);
		tell(&t, epoch, loss);
		if (t.mesh.rank == 0)
			printf("epoch %d  loss %.*f  accuracy %.1f %%\n", epoch,
				t.exact ? 9 : 3, loss, 100 * accuracy);
	}
	mesh_close(&t.mesh);
	return 0;
}
