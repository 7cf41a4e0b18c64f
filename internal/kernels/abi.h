// The parts of ONNX Runtime's C API that operators of our own need, by version 24 of the API: OrtApi is a table of functions that is
// only ever extended at its end, and OrtCustomOp says of which version it is.
#ifndef NOETHER_KERNELS_ABI_H
#define NOETHER_KERNELS_ABI_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define CALL __stdcall
#else
#define CALL
#endif

enum { API_VERSION = 24 };

// Elements of tensors, and how an operator takes an input or gives an output.
enum { ELEMENT_FLOAT = 1 };
enum { REQUIRED = 0, OPTIONAL = 1 };

typedef struct Status Status;
typedef struct Value Value;
typedef struct Context Context;   // OrtKernelContext
typedef struct Info Info;         // OrtKernelInfo
typedef struct Shaping Shaping;   // OrtShapeInferContext
typedef struct Shape Shape;       // OrtTensorTypeAndShapeInfo
typedef struct Operator Operator; // OrtCustomOp
typedef struct Allocator Allocator;

// Places of functions in OrtApi.
typedef struct Api {
	void *function[279];
} Api;

#define FUNCTION(api, place, ...) ((Status * (CALL *)(__VA_ARGS__))(api)->function[place])

#define CreateStatus(api) FUNCTION(api, 0, int, const char *)
#define CreateCustomOpDomain(api) FUNCTION(api, 26, const char *, void **)
#define CustomOpDomain_Add(api) FUNCTION(api, 27, void *, const Operator *)
#define AddCustomOpDomain(api) FUNCTION(api, 28, void *, void *)
#define GetTensorMutableData(api) FUNCTION(api, 51, const Value *, void **)
#define GetDimensionsCount(api) FUNCTION(api, 61, const Shape *, size_t *)
#define GetDimensions(api) FUNCTION(api, 62, const Shape *, int64_t *, size_t)
#define GetTensorShapeElementCount(api) FUNCTION(api, 64, const Shape *, size_t *)
#define GetTensorTypeAndShape(api) FUNCTION(api, 65, const Value *, Shape **)
#define AllocatorAlloc(api) FUNCTION(api, 75, Allocator *, size_t, void **)
#define AllocatorFree(api) FUNCTION(api, 76, Allocator *, void *)
#define KernelInfoGetAttribute_float(api) FUNCTION(api, 85, const Info *, const char *, float *)
#define KernelContext_GetInput(api) FUNCTION(api, 90, const Context *, size_t, const Value **)
#define KernelContext_GetOutput(api) FUNCTION(api, 91, Context *, size_t, const int64_t *, size_t, Value **)
#define KernelInfoGetAttribute_int64(api) FUNCTION(api, 86, const Info *, const char *, int64_t *)
#define KernelInfoGetAttributeArray_int64(api) FUNCTION(api, 163, const Info *, const char *, int64_t *, size_t *)
#define ShapeInferContext_GetInputTypeShape(api) FUNCTION(api, 268, const Shaping *, size_t, Shape **)
#define ShapeInferContext_SetOutputTypeShape(api) FUNCTION(api, 270, const Shaping *, size_t, const Shape *)
#define KernelContext_ParallelFor(api) FUNCTION(api, 274, const Context *, void (*)(void *, size_t), size_t, size_t, void *)

#define KernelInfoGetConstantInput_tensor(api) FUNCTION(api, 249, const Info *, size_t, int *, const Value **)
#define KernelInfoGetAllocator(api) FUNCTION(api, 278, const Info *, int, Allocator **)

// These return no status.
#define ReleaseShape(api) ((void(CALL *)(Shape *))(api)->function[99])
#define ReleaseAllocator(api) ((void(CALL *)(Allocator *))(api)->function[132])
#define GetErrorMessage(api) ((const char *(CALL *)(const Status *))(api)->function[2])
#define ReleaseStatus(api) ((void(CALL *)(Status *))(api)->function[93])

// OrtCustomOp.
struct Operator {
	uint32_t version;
	void *(CALL *CreateKernel)(const Operator *, const Api *, const Info *);
	const char *(CALL *GetName)(const Operator *);
	const char *(CALL *GetExecutionProviderType)(const Operator *);
	int(CALL *GetInputType)(const Operator *, size_t);
	size_t(CALL *GetInputTypeCount)(const Operator *);
	int(CALL *GetOutputType)(const Operator *, size_t);
	size_t(CALL *GetOutputTypeCount)(const Operator *);
	void(CALL *KernelCompute)(void *, Context *);
	void(CALL *KernelDestroy)(void *);
	int(CALL *GetInputCharacteristic)(const Operator *, size_t);
	int(CALL *GetOutputCharacteristic)(const Operator *, size_t);
	int(CALL *GetInputMemoryType)(const Operator *, size_t);
	int(CALL *GetVariadicInputMinArity)(const Operator *);
	int(CALL *GetVariadicInputHomogeneity)(const Operator *);
	int(CALL *GetVariadicOutputMinArity)(const Operator *);
	int(CALL *GetVariadicOutputHomogeneity)(const Operator *);
	Status *(CALL *CreateKernelV2)(const Operator *, const Api *, const Info *, void **);
	Status *(CALL *KernelComputeV2)(void *, Context *);
	Status *(CALL *InferOutputShapeFn)(const Operator *, Shaping *);
	int(CALL *GetStartVersion)(const Operator *);
	int(CALL *GetEndVersion)(const Operator *);
	size_t(CALL *GetMayInplace)(int **, int **);
	void(CALL *ReleaseMayInplace)(int *, int *);
	size_t(CALL *GetAliasMap)(int **, int **);
	void(CALL *ReleaseAliasMap)(int *, int *);
};

#endif
