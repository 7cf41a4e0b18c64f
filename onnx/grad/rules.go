package grad

import (
	"maps"
	"slices"
)

// Operators returns the sorted names of the operators with a gradient rule.
func Operators() []string { return slices.Sorted(maps.Keys(rules)) }

// rules are the gradient rules, by operator. A rule's comment is its formula, with ONNX's names; dx
// is the gradient of x.
var rules = map[string]rule{
	// activation.go
	"Celu": unary(celu), "Clip": clip, "Elu": unary(elu), "Gelu": chain(geluSlope), "HardSigmoid": unary(hardSigmoid),
	"HardSwish": unary(hardSwish), "LeakyRelu": unary(leakyRelu), "Mish": chain(mishSlope), "PRelu": pRelu,
	"Relu": unary(relu), "Selu": unary(selu), "Shrink": unary(shrink), "Sigmoid": chain(sigmoidSlope), "Softplus": chain(softplusSlope),
	"Softsign": chainReciprocal(softsignReciprocal), "Tanh": chain(tanhSlope), "ThresholdedRelu": unary(thresholdedRelu),
	// conv.go
	"Conv": conv, "ConvTranspose": convTranspose,
	// einsum.go
	"Einsum": einsumRule,
	// elementwise.go
	"Abs": chain(absSlope), "Acos": chainReciprocal(acosReciprocal), "Acosh": chainReciprocal(acoshReciprocal), "Add": sum,
	"Asin": chainReciprocal(asinReciprocal), "Asinh": chainReciprocal(asinhReciprocal), "Atan": chainReciprocal(atanReciprocal),
	"Atanh": chainReciprocal(atanhReciprocal), "Cos": chain(cosSlope), "Cosh": chain(coshSlope), "Div": div,
	"Erf": chain(erfSlope), "Exp": chain(expSlope), "Log": chainReciprocal(logReciprocal), "Max": extreme, "Mean": mean,
	"Min": extreme, "Mul": mul, "Neg": unary(neg), "Pow": pow, "Reciprocal": chain(reciprocalSlope), "Sin": chain(sinSlope),
	"Sinh": chain(sinhSlope), "Sqrt": chainReciprocal(sqrtReciprocal), "Sub": sub, "Sum": sum, "Tan": chain(tanSlope),
	"Where": where,
	// fold.go
	"Col2Im": unary(col2Im),
	// gather.go
	"Gather": unary(gather), "GatherElements": unary(gatherElements), "GatherND": unary(gatherND),
	// matrix.go
	"Gemm": gemm, "MatMul": matMul,
	// maxpool.go
	"MaxPool": unary(maxPool),
	// move.go
	"Concat": concat, "CumSum": unary(cumSum), "DepthToSpace": unary(depthToSpace), "Expand": unary(expand),
	"SpaceToDepth": unary(spaceToDepth), "Split": unary(split), "Tile": unary(tile), "Transpose": unary(transpose),
	"Trilu": unary(trilu),
	// norm.go
	"BatchNormalization": batchNormalization, "GroupNormalization": groupNormalization,
	"InstanceNormalization": instanceNormalization, "LayerNormalization": layerNormalization,
	"LpNormalization": unary(lpNormalization), "LRN": unary(lrn),
	// pad.go
	"Pad": pad,
	// pool.go
	"AveragePool": unary(averagePool), "GlobalAveragePool": globalAveragePool, "GlobalLpPool": unary(globalLpPool),
	"GlobalMaxPool": unary(globalMaxPool), "LpPool": unary(lpPool),
	// recurrent.go
	"GRU": recurrent, "LSTM": recurrent, "RNN": recurrent,
	// reduce.go
	"ReduceL1": reducing(l1Gradient), "ReduceL2": reducing(l2Gradient), "ReduceLogSum": expanding(logSumGradient),
	"ReduceLogSumExp": reducing(logSumExpGradient), "ReduceMax": reducing(extremeGradient),
	"ReduceMean": expanding(meanGradient), "ReduceMin": reducing(extremeGradient), "ReduceProd": reducing(prodGradient),
	"ReduceSum": expanding(sumGradient), "ReduceSumSquare": reducing(sumSquareGradient),
	// resize.go
	"Resize": unary(resize), "Upsample": unary(resize),
	// scatter.go
	"Scatter": scatter(""), "ScatterElements": scatter("GatherElements"), "ScatterND": scatter("GatherND"), "TopK": unary(topK),
	// shape.go
	"Cast": unary(cast), "CastLike": unary(cast), "Dropout": unary(dropout), "Flatten": unary(reshape), "Identity": unary(identity),
	"Reshape": unary(reshape), "Squeeze": unary(reshape), "Unsqueeze": unary(reshape),
	// slice.go
	"Slice": unary(slice),
	// softmax.go
	"LogSoftmax": unary(logSoftmax), "Softmax": unary(softmax),
}

// piecewiseConstant operators have derivative zero where it exists, such as steps and those that
// read shapes. Integer results need no entry.
var piecewiseConstant = map[string]bool{
	"Floor": true, "Ceil": true, "Round": true, "Sign": true, "Hardmax": true, "Shape": true, "Size": true, "ConstantOfShape": true,
	"EyeLike": true, "RandomNormalLike": true, "RandomUniformLike": true,
}
