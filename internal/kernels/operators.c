#include "operators.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "layers.h"
#include "problem.h"

const Api *api;
static void *domain;

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

Status *wrong(const char *what) { return CreateStatus(api)(2, what); }

Status *input(Context *context, size_t i, const float **data, int64_t *dims, size_t *axes, size_t *count) {
	const Value *value;
	TRY(KernelContext_GetInput(api)(context, i, &value));
	*data = NULL;
	*axes = *count = 0;
	return value == NULL ? NULL : content(value, data, dims, axes, count);
}

Status *content(const Value *value, const float **data, int64_t *dims, size_t *axes, size_t *count) {
	Shape *shape;
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

Status *output(Context *context, size_t i, const int64_t *dims, size_t axes, float **data) {
	Value *value;
	TRY(KernelContext_GetOutput(api)(context, i, dims, axes, &value));
	*data = NULL;
	return value == NULL ? NULL : GetTensorMutableData(api)(value, (void **)data);
}

Status *parallel(const Context *context, void (*part)(void *, size_t), size_t parts, void *work) {
	if (parts > 1)
		return KernelContext_ParallelFor(api)(context, part, parts, 0, work);
	if (parts == 1)
		part(work, 0);
	return NULL;
}

static Status *CALL compute_update(void *kernel, Context *context) {
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
	return parallel(context, work_block, (w.count + BLOCK - 1) / BLOCK, &w);
}

static Status *CALL compute_mirror(void *kernel, Context *context) {
	(void)kernel;
	Mirror m = {0};
	int64_t dims[AXES];
	size_t axes, count;
	TRY(input(context, 0, &m.w, dims, &axes, &count));
	if (axes < 2)
		return wrong("weights to be mirrored have fewer than two axes");
	m.out = dims[0];
	m.in = dims[1];
	m.taps = 1;
	for (size_t i = 2; i < axes; i++)
		m.taps *= dims[i];
	TRY(output(context, 0, (int64_t[]){m.in, m.out, m.taps}, 3, &m.mirrored));
	return parallel(context, mirror_rows, (m.in + MIRROR_ROWS - 1) / MIRROR_ROWS, &m);
}

// take_normalised reads what is normalised, samples x channels x places.
static Status *take_normalised(Context *context, Tensor *x, size_t *samples, size_t *channels, size_t *places) {
	TRY(take(context, 0, x));
	if (x->axes < 2)
		return wrong("what is normalised has fewer than two axes");
	*samples = x->dims[0];
	*channels = x->dims[1];
	*places = 1;
	for (size_t i = 2; i < x->axes; i++)
		*places *= x->dims[i];
	return NULL;
}

static Status *CALL compute_norm_gradient(void *kernel, Context *context) {
	NormGradient g = {.epsilon = ((const Kernel *)kernel)->epsilon};
	Tensor x;
	int64_t others[AXES];
	size_t n, other;
	TRY(take_normalised(context, &x, &g.samples, &g.channels, &g.places));
	g.x = x.data;
	const float **vectors[] = {&g.dy, &g.scale, &g.mean, &g.variance};
	for (int i = 0; i < 4; i++) {
		TRY(input(context, 1 + i, vectors[i], others, &n, &other));
		if (other != (i == 0 ? x.count : g.channels))
			return wrong("a gradient or a statistic does not fit what is normalised");
	}
	TRY(output(context, 0, x.dims, x.axes, &g.dx));
	TRY(output(context, 1, x.dims + 1, 1, &g.dscale));
	TRY(output(context, 2, x.dims + 1, 1, &g.dbias));
	return parallel(context, norm_gradient_channel, g.channels, &g);
}

static Status *CALL compute_norm(void *kernel, Context *context) {
	Norm m = {.epsilon = ((const Kernel *)kernel)->epsilon};
	Tensor x;
	int64_t others[AXES];
	size_t n, count;
	TRY(take_normalised(context, &x, &m.samples, &m.channels, &m.places));
	m.x = x.data;
	const float **vectors[] = {&m.scale, &m.bias};
	for (int i = 0; i < 2; i++) {
		TRY(input(context, 1 + i, vectors[i], others, &n, &count));
		if (count != m.channels)
			return wrong("scale or bias does not fit what is normalised");
	}
	TRY(output(context, 0, x.dims, x.axes, &m.y));
	TRY(output(context, 1, x.dims + 1, 1, &m.mean));
	TRY(output(context, 2, x.dims + 1, 1, &m.variance));
	return parallel(context, norm_channel, m.channels, &m);
}

static Status *CALL compute_relu_gradient(void *kernel, Context *context) {
	(void)kernel;
	ReluGradient g = {0};
	int64_t dims[AXES];
	size_t axes, count;
	TRY(input(context, 0, &g.y, dims, &axes, &g.count));
	TRY(input(context, 1, &g.dy, dims, &axes, &count));
	if (count != g.count)
		return wrong("a gradient is not as large as what it is of");
	TRY(output(context, 0, dims, axes, &g.dx));
	return parallel(context, relu_gradient_block, (count + RELU_BLOCK - 1) / RELU_BLOCK, &g);
}

static Status *CALL compute_turn(void *kernel, Context *context) {
	const int last = ((const Kernel *)kernel)->kind->last;
	Tensor x;
	TRY(take(context, 0, &x));
	if (x.axes < 2)
		return wrong("what has channels has fewer than two axes");
	int64_t dims[AXES];
	Turn t = {.x = x.data, .rows = 1, .columns = 1};
	for (size_t i = 0; i < x.axes; i++)
		dims[i] = i == 0 ? x.dims[0] : x.dims[last ? i % (x.axes - 1) + 1 : (i + x.axes - 3) % (x.axes - 1) + 1];
	for (size_t i = 1; i < x.axes; i++)
		*((last ? i == 1 : i < x.axes - 1) ? &t.rows : &t.columns) *= x.dims[i];
	TRY(output(context, 0, dims, x.axes, &t.y));
	return x.count == 0 ? NULL : parallel(context, turn_part, x.dims[0] * turn_parts(&t), &t);
}

static void CALL destroy(void *kernel) {
	Kernel *k = kernel;
	if (k->prepared != NULL) {
		Status *s = AllocatorFree(api)(k->memory, k->prepared);
		if (s != NULL)
			ReleaseStatus(api)(s);
	}
	ReleaseAllocator(api)(k->memory);
	free(k);
}

// whole is an attribute that is an integer, 0 where it is absent.
static int64_t whole(const Info *info, const char *name) {
	int64_t value = 0;
	Status *s = KernelInfoGetAttribute_int64(api)(info, name, &value);
	if (s != NULL)
		ReleaseStatus(api)(s);
	return value;
}

static Status *CALL create(const Operator *op, const Api *a, const Info *info, void **kernel) {
	(void)a;
	Kernel *k = calloc(1, sizeof *k);
	if (k == NULL)
		return wrong("there is no memory for an operator");
	k->kind = (const Kind *)op;
	k->update = k->kind->update == NULL ? NULL : k->kind->update();
	struct {
		const char *name;
		float *value;
	} attributes[] = {{"decay", &k->constants.decay}, {"beta1", &k->constants.beta1}, {"beta2", &k->constants.beta2}, {"momentum", &k->constants.momentum}, {"nesterov", &k->constants.nesterov}, {"epsilon", &k->epsilon}};
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
		Status *s = KernelInfoGetAttribute_float(api)(info, attributes[i].name, attributes[i].value);
		if (s != NULL) // absent, and so 0
			ReleaseStatus(api)(s);
	}
	Status *s = read_window(info, &k->window);
	k->relu = whole(info, "relu") != 0;
	k->side = k->kind->last && whole(info, "side") == 4 ? 4 : 2;
	if (s == NULL)
		s = KernelInfoGetAllocator(api)(info, 0, &k->memory);
	if (s != NULL) {
		free(k);
		return s;
	}
	if (k->kind->prepare != NULL && (s = k->kind->prepare(info, k)) != NULL) {
		destroy(k);
		return s;
	}
	*kernel = k;
	return NULL;
}

static Status *CALL infer(const Operator *op, Shaping *context) {
	const Kind *kind = (const Kind *)op;
	for (int i = 0; i < kind->outputs; i++) {
		Shape *shape; // it stays the context's
		TRY(ShapeInferContext_GetInputTypeShape(api)(context, kind->like[i], &shape));
		size_t axes;
		TRY(GetDimensionsCount(api)(shape, &axes));
		if (axes > 0) // a shape that is not known has none either
			TRY(ShapeInferContext_SetOutputTypeShape(api)(context, i, shape));
	}
	return NULL;
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
static size_t CALL inputs(const Operator *op) { return ((const Kind *)op)->inputs; }
static size_t CALL outputs(const Operator *op) { return ((const Kind *)op)->outputs; }
static int CALL need(const Operator *op, size_t i) { return i < (size_t)((const Kind *)op)->needed ? REQUIRED : OPTIONAL; }
static int CALL leave(const Operator *op, size_t i) {
	(void)op, (void)i;
	return OPTIONAL;
}
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

#define ANY                                                                                                                   \
	.version = API_VERSION, .GetName = name_of, .GetExecutionProviderType = provider, .GetInputType = element,                 \
	.GetInputTypeCount = inputs, .GetOutputType = element, .GetOutputTypeCount = outputs, .KernelDestroy = destroy,            \
	.GetInputCharacteristic = need, .GetInputMemoryType = zero, .GetVariadicInputMinArity = one, \
	.GetVariadicInputHomogeneity = one, .GetVariadicOutputMinArity = one, .GetVariadicOutputHomogeneity = one,                 \
	.CreateKernelV2 = create, .GetStartVersion = one, .GetEndVersion = latest
#define OPERATOR ANY, .GetOutputCharacteristic = zero
#define SHAPED OPERATOR, .InferOutputShapeFn = infer
#define UPDATE SHAPED, .KernelComputeV2 = compute_update, .ReleaseMayInplace = release

static const Kind kinds[] = {
	{{UPDATE, .GetMayInplace = in_place_adam}, "Adam", 7, 7, 3, {0, 0, 0}, .memory = 2, .rates = 3, .update = adam_update},
	{{UPDATE, .GetMayInplace = in_place_momentum}, "Momentum", 4, 4, 2, {0, 0}, .memory = 1, .rates = 1, .update = momentum_update},
	{{OPERATOR, .KernelComputeV2 = compute_mirror}, "Mirror", 1, 1, 1},
	{{SHAPED, .KernelComputeV2 = compute_norm_gradient}, "BatchNormalizationGradient", 5, 5, 3, {0, 2, 2}},
	{{SHAPED, .KernelComputeV2 = compute_norm}, "BatchNormalization", 3, 3, 3, {0, 1, 1}},
	{{SHAPED, .KernelComputeV2 = compute_relu_gradient}, "ReluGradient", 2, 2, 1, {0}},
	{{OPERATOR, .KernelComputeV2 = compute_convolution}, "Convolution", 3, 2, 1, .prepare = prepare_convolution},
	{{SHAPED, .KernelComputeV2 = compute_input_gradient}, "ConvolutionInputGradient", 3, 3, 1, {2}, .prepare = prepare_input_gradient},
	{{ANY, .GetOutputCharacteristic = leave, .KernelComputeV2 = compute_convolution}, "ConvolutionLast", 5, 2, 4, .last = 1, .prepare = prepare_convolution},
	{{SHAPED, .KernelComputeV2 = compute_input_gradient}, "ConvolutionInputGradientLast", 5, 3, 1, {2}, .last = 1, .prepare = prepare_input_gradient},
	{{OPERATOR, .KernelComputeV2 = compute_turn}, "ChannelsLast", 1, 1, 1, .last = 1},
	{{OPERATOR, .KernelComputeV2 = compute_turn}, "ChannelsFirst", 1, 1, 1},
	{{SHAPED, .KernelComputeV2 = compute_kernel_gradient}, "ConvolutionKernelGradient", 3, 3, 1, {2}},
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
