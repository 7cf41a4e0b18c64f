// The operators as ONNX Runtime sees them.
#ifndef NOETHER_KERNELS_OPERATORS_H
#define NOETHER_KERNELS_OPERATORS_H

// kernels_load makes the domain of the operators, given OrtApi; it returns an error, to be freed, or NULL.
char *kernels_load(const void *api);

// kernels_register gives OrtSessionOptions the operators; it returns an error, to be freed, or NULL.
char *kernels_register(void *options);

#endif
