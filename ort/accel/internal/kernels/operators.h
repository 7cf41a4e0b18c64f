// Registration of the operators.
#ifndef NOETHER_KERNELS_OPERATORS_H
#define NOETHER_KERNELS_OPERATORS_H

// kernels_load creates the domain of the operators, given the OrtApi. It returns an error message,
// to be freed, or NULL.
char *kernels_load(const void *api);

// kernels_register adds the operators to OrtSessionOptions. It returns an error message, to be
// freed, or NULL.
char *kernels_register(void *options);

#endif
