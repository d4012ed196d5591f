/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - see net.h. */
#include <math.h>
#include <string.h>

#include "digits.h"
#include "net.h"

/* One layer; each output has a row of weights, the bias last. */
struct layer {
	int in, out;
	size_t at; /* of its weights in the array of all */
	int rectified;
};

static const struct layer layers[] = {
	{ NET_IN, NET_A, 0, 1 },
	{ NET_A, NET_B, (NET_IN + 1) * NET_A, 1 },
	{ NET_B, NET_OUT, (NET_IN + 1) * NET_A + (NET_A + 1) * NET_B, 0 },
};

enum { LAYERS = 3, WIDEST = NET_A };

/* One picture's way through the net: what goes into each layer, what comes out
 * of the last, and how the loss changes with each of these. */
struct pass {
	float value[LAYERS + 1][WIDEST];
	float slope[LAYERS + 1][WIDEST];
};

void
net_init(float *weight, uint64_t seed)
{
	uint64_t random = seed;
	int i, j, k;

	for (i = 0; i < LAYERS; i++) {
		float *w = weight + layers[i].at;
		float range = sqrtf(6.0f / (float)layers[i].in);

		for (j = 0; j < layers[i].out; j++) {
			for (k = 0; k < layers[i].in; k++)
				*w++ = range * (2 * digits_random(&random) - 1);
			*w++ = 0;
		}
	}
}

static void
forward(const struct layer *layer, const float *weight, const float *in,
	float *out)
{
	const float *row = weight + layer->at;
	int j, k;

	for (j = 0; j < layer->out; j++, row += layer->in + 1) {
		float sum = row[layer->in];

		for (k = 0; k < layer->in; k++)
			sum += row[k] * in[k];
		out[j] = layer->rectified && sum < 0 ? 0 : sum;
	}
}

/* From the slopes behind layer @i to those of its weights and in front. */
static void
backward(int i, const float *weight, struct pass *pass, float *gradient)
{
	const float *row = weight + layers[i].at;
	const float *in = pass->value[i], *slope = pass->slope[i + 1];
	float *slope_in = pass->slope[i], *g = gradient + layers[i].at;
	int count = layers[i].in, j, k;

	memset(slope_in, 0, (size_t)count * sizeof(*slope_in));
	for (j = 0; j < layers[i].out; j++) {
		for (k = 0; k < count; k++) {
			g[k] += slope[j] * in[k];
			slope_in[k] += slope[j] * row[k];
		}
		g[count] += slope[j];
		row += count + 1;
		g += count + 1;
	}
	for (k = 0; i > 0 && k < count; k++)
		slope_in[k] = in[k] > 0 ? slope_in[k] : 0;
}

static void
run(const float *weight, const uint8_t *image, struct pass *pass)
{
	int i;

	for (i = 0; i < NET_IN; i++)
		pass->value[0][i] = (float)image[i] / DIGITS_INK;
	for (i = 0; i < LAYERS; i++)
		forward(&layers[i], weight, pass->value[i], pass->value[i + 1]);
}

/* The outputs become probabilities. */
static void
soften(float *out)
{
	float top = out[0], sum = 0;
	int i;

	for (i = 1; i < NET_OUT; i++)
		top = fmaxf(top, out[i]);
	for (i = 0; i < NET_OUT; i++)
		sum += out[i] = expf(out[i] - top);
	for (i = 0; i < NET_OUT; i++)
		out[i] /= sum;
}

float
net_learn(const float *weight, const uint8_t *image, int label, float *gradient)
{
	struct pass pass;
	float *slope = pass.slope[LAYERS], likely;
	int i;

	run(weight, image, &pass);
	memcpy(slope, pass.value[LAYERS], sizeof(*slope) * NET_OUT);
	soften(slope);
	likely = slope[label];
	slope[label] -= 1;
	for (i = LAYERS - 1; i >= 0; i--)
		backward(i, weight, &pass, gradient);
	return -logf(fmaxf(likely, 1e-9f));
}

int
net_answer(const float *weight, const uint8_t *image)
{
	struct pass pass;
	int i, best = 0;

	run(weight, image, &pass);
	for (i = 1; i < NET_OUT; i++)
		if (pass.value[LAYERS][i] > pass.value[LAYERS][best])
			best = i;
	return best;
}
