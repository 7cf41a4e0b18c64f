//go:build amd64

// The end of a convolution whose result is also written in NCHW: an Epilogue adds a tensor and
// applies ReLU or a mask. The result can be written at three stages: CONVOLVED, after the addend
// (ADDED), and FINAL. A Run is consecutive pixels of a sample; sums holds mr floats for each.

#include "convolution.h"

int writes_nchw(const Epilogue *e) { return e->nchw[CONVOLVED] != NULL || e->nchw[ADDED] != NULL || e->nchw[FINAL] != NULL; }

// write_nchw transposes n channels, from channel on, of the pixels of a run to the NCHW result of a
// stage (CONVOLVED, ADDED or FINAL), if that is wanted. stride is the distance of two pixels of src
// in floats.
static void write_nchw(const float *src, size_t stride, const Epilogue *e, const Run *run, size_t channel, size_t n, int stage) {
	if (e->nchw[stage] != NULL)
		transpose(src, stride, e->nchw[stage] + (run->sample * e->channels + channel) * e->pixels + run->pixel, e->pixels, run->count, n);
}

void finish_run(const MicroKernels *mk, const Epilogue *e, const Run *run, size_t channel, size_t n, float *sums) {
	const size_t at = (run->sample * e->pixels + run->pixel) * e->channels + channel;
	Epilogue rest = *e;
	write_nchw(sums, mk->mr, e, run, channel, n, CONVOLVED);
	if (e->addend != NULL) {
		for (size_t j = 0; j < run->count; j++)
			mk->add(sums + j * mk->mr, e->addend + at + j * e->channels, n);
		rest.addend = NULL;
	}
	write_nchw(sums, mk->mr, e, run, channel, n, ADDED);
	if (e->y == NULL)
		rest.y = sums;
	if (e->y != NULL || e->relu || e->mask != NULL)
		for (size_t j = 0; j < run->count; j++)
			mk->finish(sums + j * mk->mr, &rest, e->y == NULL ? j * mk->mr : at + j * e->channels, n);
	write_nchw(e->y == NULL ? sums : e->y + at, e->y == NULL ? mk->mr : e->channels, e, run, channel, n, FINAL);
}
