#include "operators.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "update.h"

// What an operator is beside its name: as inputs p, g, so many arrays that it remembers, and so many rates.
typedef struct Kind {
	Operator op; // first, so that the engine's pointer to it is one to the whole
	const char *name;
	int memory, rates;
	Update (*update)(void);
} Kind;

static const Api *api;
static void *domain;

// A kernel is a node of a graph.
typedef struct Kernel {
	const Kind *kind;
	Constants constants;
	Update update;
} Kernel;

// Blocks of so many elements are worked on side by side. Where a block ends does not depend on the threads, and so no number does.
enum { BLOCK = 1 << 14 };

typedef struct Work {
	const Kernel *kernel;
	Arrays arrays;
	size_t count;
} Work;

static void work_block(void *data, size_t block) {
	const Work *w = data;
	const size_t from = block * BLOCK, to = from + BLOCK;
	w->kernel->update(&w->kernel->constants, &w->arrays, from, to < w->count ? to : w->count);
}

#define TRY(call)                  \
	do {                       \
		Status *s = (call); \
		if (s != NULL)     \
			return s;  \
	} while (0)

static Status *wrong(const char *what) { return CreateStatus(api)(2, what); }

enum { AXES = 16 };

// input gives the elements of an input, and their shape.
static Status *input(Context *context, size_t i, const float **data, int64_t *dims, size_t *axes, size_t *count) {
	const Value *value;
	Shape *shape;
	TRY(KernelContext_GetInput(api)(context, i, &value));
	TRY(GetTensorMutableData(api)(value, (void **)data));
	TRY(GetTensorTypeAndShape(api)(value, &shape));
	Status *s = GetDimensionsCount(api)(shape, axes);
	if (s == NULL)
		s = *axes > AXES ? wrong("a parameter has more than 16 axes") : GetDimensions(api)(shape, dims, *axes);
	if (s == NULL)
		s = GetTensorShapeElementCount(api)(shape, count);
	ReleaseShape(api)(shape);
	return s;
}

static Status *output(Context *context, size_t i, const int64_t *dims, size_t axes, float **data) {
	Value *value;
	TRY(KernelContext_GetOutput(api)(context, i, dims, axes, &value));
	return GetTensorMutableData(api)(value, (void **)data);
}

static Status *CALL compute(void *kernel, Context *context) {
	Work w = {.kernel = kernel};
	const Kind *kind = w.kernel->kind;
	int64_t dims[AXES], others[AXES];
	size_t axes, n, count;
	TRY(input(context, 0, &w.arrays.p, dims, &axes, &w.count));
	const float **arrays[] = {&w.arrays.g, &w.arrays.m, &w.arrays.v};
	for (int i = 0; i <= kind->memory; i++) {
		TRY(input(context, 1 + i, arrays[i], others, &n, &count));
		if (count != w.count)
			return wrong("a gradient, or what is remembered, is not as large as its parameter");
	}
	for (int i = 0; i < kind->rates; i++) {
		const float *rate;
		TRY(input(context, 2 + kind->memory + i, &rate, others, &n, &count));
		if (count != 1)
			return wrong("a rate is one number");
		w.arrays.rates[i] = *rate;
	}
	float **nexts[] = {&w.arrays.next_p, &w.arrays.next_m, &w.arrays.next_v};
	for (int i = 0; i <= kind->memory; i++)
		TRY(output(context, i, dims, axes, nexts[i]));
	const size_t blocks = (w.count + BLOCK - 1) / BLOCK;
	if (blocks > 1)
		return KernelContext_ParallelFor(api)(context, work_block, blocks, 0, &w);
	if (blocks == 1)
		work_block(&w, 0);
	return NULL;
}

static Status *CALL create(const Operator *op, const Api *a, const Info *info, void **kernel) {
	(void)a;
	Kernel *k = calloc(1, sizeof *k);
	if (k == NULL)
		return wrong("there is no memory for an operator");
	k->kind = (const Kind *)op;
	k->update = k->kind->update();
	struct {
		const char *name;
		float *value;
	} attributes[] = {{"decay", &k->constants.decay}, {"beta1", &k->constants.beta1}, {"beta2", &k->constants.beta2}, {"momentum", &k->constants.momentum}, {"nesterov", &k->constants.nesterov}};
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
		Status *s = KernelInfoGetAttribute_float(api)(info, attributes[i].name, attributes[i].value);
		if (s != NULL) // absent, and so 0
			ReleaseStatus(api)(s);
	}
	*kernel = k;
	return NULL;
}

static void CALL destroy(void *kernel) { free(kernel); }

// Outputs have the shape of the parameters.
static Status *CALL infer(const Operator *op, Shaping *context) {
	Shape *shape;
	TRY(ShapeInferContext_GetInputTypeShape(api)(context, 0, &shape));
	Status *s = NULL;
	for (int i = 0; i <= ((const Kind *)op)->memory && s == NULL; i++)
		s = ShapeInferContext_SetOutputTypeShape(api)(context, i, shape);
	return s; // the shape is the context's
}

static const char *CALL name_of(const Operator *op) { return ((const Kind *)op)->name; }
static const char *CALL provider(const Operator *op) {
	(void)op;
	return "CPUExecutionProvider";
}
static int CALL element(const Operator *op, size_t i) {
	(void)op, (void)i;
	return ELEMENT_FLOAT;
}
static size_t CALL inputs(const Operator *op) {
	const Kind *kind = (const Kind *)op;
	return 2 + kind->memory + kind->rates;
}
static size_t CALL outputs(const Operator *op) { return 1 + ((const Kind *)op)->memory; }
static int CALL zero(const Operator *op, size_t i) {
	(void)op, (void)i;
	return 0; // required, and in the usual memory
}
static int CALL one(const Operator *op) {
	(void)op;
	return 1;
}
static int CALL latest(const Operator *op) {
	(void)op;
	return INT_MAX;
}

// What a parameter or a memory becomes may lie where it lay: input 0, 2, 3 and output 0, 1, 2.
static size_t in_place(int memory, int **from, int **to) {
	*from = malloc(3 * sizeof **from);
	*to = malloc(3 * sizeof **to);
	if (*from == NULL || *to == NULL)
		return 0;
	for (int i = 0; i <= memory; i++) {
		(*from)[i] = i == 0 ? 0 : 1 + i;
		(*to)[i] = i;
	}
	return 1 + memory;
}
static size_t CALL in_place_adam(int **from, int **to) { return in_place(2, from, to); }
static size_t CALL in_place_momentum(int **from, int **to) { return in_place(1, from, to); }
static void CALL release(int *from, int *to) {
	free(from);
	free(to);
}

#define OPERATOR                                                                                                                   \
	.version = API_VERSION, .GetName = name_of, .GetExecutionProviderType = provider, .GetInputType = element,                 \
	.GetInputTypeCount = inputs, .GetOutputType = element, .GetOutputTypeCount = outputs, .KernelDestroy = destroy,            \
	.GetInputCharacteristic = zero, .GetOutputCharacteristic = zero, .GetInputMemoryType = zero, .GetVariadicInputMinArity = one, \
	.GetVariadicInputHomogeneity = one, .GetVariadicOutputMinArity = one, .GetVariadicOutputHomogeneity = one,                 \
	.CreateKernelV2 = create, .KernelComputeV2 = compute, .InferOutputShapeFn = infer, .GetStartVersion = one,                 \
	.GetEndVersion = latest, .ReleaseMayInplace = release

static const Kind kinds[] = {
	{{OPERATOR, .GetMayInplace = in_place_adam}, "Adam", 2, 3, adam_update},
	{{OPERATOR, .GetMayInplace = in_place_momentum}, "Momentum", 1, 1, momentum_update},
};

// message is the text of an error, which it releases; NULL for none.
static char *message(Status *s) {
	if (s == NULL)
		return NULL;
	char *text = strdup(GetErrorMessage(api)(s));
	ReleaseStatus(api)(s);
	return text;
}

char *kernels_load(const void *table) {
	api = table;
	Status *s = CreateCustomOpDomain(api)("noether", &domain);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && s == NULL; i++)
		s = CustomOpDomain_Add(api)(domain, &kinds[i].op);
	return message(s);
}

char *kernels_add(void *options) { return message(AddCustomOpDomain(api)(options, domain)); }
