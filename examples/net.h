/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - a perceptron with two hidden layers, 64-300-100-10 as in LeCun,
 * Bottou, Bengio and Haffner 1998, and its gradient.
 *
 * All weights are one array of floats, and so is the gradient: what has to be
 * added up over the ranks is one buffer.
 */
#ifndef EXAMPLES_NET_H
#define EXAMPLES_NET_H

#include <stdint.h>

enum {
	NET_IN = 64,
	NET_A = 300,
	NET_B = 100,
	NET_OUT = 10,
	NET_WEIGHTS = (NET_IN + 1) * NET_A + (NET_A + 1) * NET_B +
		(NET_B + 1) * NET_OUT,
};

/* net_init() - small random weights; the same for the same @seed. */
void net_init(float *weight, uint64_t seed);

/*
 * net_learn() - add the gradient of one picture to @gradient.
 *
 * @image: NET_IN pixels, 0 to 16
 * Returns the loss, -log of the probability given to @label.
 */
float net_learn(const float *weight, const uint8_t *image, int label,
	float *gradient);

/* net_answer() - the digit that the picture most likely shows. */
int net_answer(const float *weight, const uint8_t *image);

#endif /* EXAMPLES_NET_H */
