// Registration of Noether's operators with ONNX Runtime.
#ifndef NOETHER_KERNELS_OPERATORS_H
#define NOETHER_KERNELS_OPERATORS_H

// kernels_load creates the domain "noether" of the operators. api is the OrtApi, the table of ONNX
// Runtime's C functions. It returns NULL, or an error message that the caller frees.
char *kernels_load(const void *api);

// kernels_register adds the domain to the options of a session, OrtSessionOptions. It returns NULL,
// or an error message that the caller frees.
char *kernels_register(void *options);

#endif
