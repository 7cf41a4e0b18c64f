package grad

import (
	"maps"
	"slices"
)

// Operators are the names of the operators that gradients flow through, sorted.
func Operators() []string { return slices.Sorted(maps.Keys(rules)) }

// rules are the operators that gradients flow through.
var rules = map[string]rule{
	// arithmetic.go
	"Add": add, "Sub": sub, "Mul": mul, "Div": div,
	// relu.go
	"Relu": relu,
	// shape.go
	"Identity": identity, "Cast": cast, "Dropout": dropout, "Flatten": reshape, "Reshape": reshape,
	// conv.go
	"Conv": conv, "ConvTranspose": convTranspose,
	// matrix.go
	"Gemm": gemm, "MatMul": matMul,
	// reduce.go
	"ReduceL1": reducing(l1Gradient), "ReduceL2": reducing(l2Gradient), "ReduceLogSum": repeating(logSumGradient),
	"ReduceLogSumExp": reducing(logSumExpGradient), "ReduceMax": reducing(extremeGradient),
	"ReduceMean": repeating(meanGradient), "ReduceMin": reducing(extremeGradient), "ReduceProd": reducing(prodGradient),
	"ReduceSum": repeating(sumGradient), "ReduceSumSquare": reducing(sumSquareGradient),
	// elementwise.go
	"Abs": chain(absSlope), "Acos": over(acosOver), "Acosh": over(acoshOver), "Asin": over(asinOver),
	"Asinh": over(asinhOver), "Atan": over(atanOver), "Atanh": over(atanhOver), "Cos": chain(cosSlope),
	"Cosh": chain(coshSlope), "Erf": chain(erfSlope), "Exp": chain(expSlope), "Log": over(logOver), "Max": extreme,
	"Mean": mean, "Min": extreme, "Neg": neg, "Pow": pow, "Reciprocal": chain(reciprocalSlope), "Sin": chain(sinSlope),
	"Sinh": chain(sinhSlope), "Sqrt": over(sqrtOver), "Sum": sum, "Tan": chain(tanSlope), "Where": where,
	// activation.go
	"Celu": celu, "Clip": clip, "Elu": elu, "Gelu": chain(geluSlope), "HardSigmoid": hardSigmoid, "HardSwish": hardSwish,
	"LeakyRelu": leakyRelu, "Mish": chain(mishSlope), "PRelu": pRelu, "Selu": selu, "Sigmoid": chain(sigmoidSlope),
	"Softplus": chain(softplusSlope), "Softsign": over(softsignOver), "Tanh": chain(tanhSlope),
	"ThresholdedRelu": thresholdedRelu,
	// move.go
	"Concat": concat, "CumSum": cumSum, "DepthToSpace": depthToSpace, "Expand": expand, "Pad": pad, "Resize": resize, "Slice": slice,
	"SpaceToDepth": spaceToDepth, "Split": split, "Squeeze": reshape, "Tile": tile, "Transpose": transpose,
	"Trilu": trilu, "Unsqueeze": reshape, "Upsample": resize,
	// einsum.go
	"Einsum": einsumRule,
	// recurrent.go
	"GRU": recurrent, "LSTM": recurrent, "RNN": recurrent,
	// gather.go
	"Gather": gather, "GatherElements": gatherElements, "GatherND": gatherND,
	// scatter.go
	"Scatter": scatter(""), "ScatterElements": scatter("GatherElements"), "ScatterND": scatter("GatherND"), "TopK": topK,
	// softmax.go
	"LogSoftmax": logSoftmax, "Softmax": softmax,
	// norm.go
	"BatchNormalization": batchNormalization, "GroupNormalization": groupNormalization,
	"InstanceNormalization": instanceNormalization, "LayerNormalization": layerNormalization,
	"LpNormalization": lpNormalization, "LRN": lrn,
	// pool.go
	"AveragePool": averagePool, "GlobalAveragePool": globalAveragePool, "GlobalLpPool": globalLpPool,
	"GlobalMaxPool": globalMaxPool, "LpPool": lpPool,
	// maxpool.go
	"MaxPool": maxPool,
}

// piecewiseConstant are operators whose result does not change where their input changes a little, so
// that their gradient is zero wherever there is one: a gradient ends at them. Operators with
// integer results need not be listed.
var piecewiseConstant = map[string]bool{
	"Floor": true, "Ceil": true, "Round": true, "Sign": true, "Hardmax": true, "Shape": true, "Size": true, "ConstantOfShape": true,
	"EyeLike": true, "RandomNormalLike": true, "RandomUniformLike": true,
}
