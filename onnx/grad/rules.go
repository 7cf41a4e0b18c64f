package grad

// rules are the operators that gradients flow through.
var rules = map[string]rule{
	// arithmetic.go
	"Add": add, "Sub": sub, "Mul": mul, "Div": div, "Relu": relu,
	// shape.go
	"Identity": identity, "Cast": cast, "Dropout": dropout, "Flatten": reshape, "Reshape": reshape,
	// conv.go
	"Conv": conv,
	// matrix.go
	"Gemm": gemm, "MatMul": matMul,
	// reduce.go
	"ReduceSum": reduceSum, "ReduceMean": reduceMean,
	// elementwise.go
	"Neg": neg, "Sqrt": sqrt,
	// move.go
	"Transpose": transpose,
	// pool.go
	"GlobalAveragePool": globalAveragePool, "MaxPool": maxPool,
}

// constantNearby are operators whose result does not change where their input changes a little, so that their gradient
// is zero wherever there is one: a gradient ends at them. Operators with integer results need not be listed.
var constantNearby = map[string]bool{
	"Floor": true, "Ceil": true, "Round": true, "Sign": true, "Shape": true, "Size": true, "ConstantOfShape": true,
	"EyeLike": true, "RandomNormalLike": true, "RandomUniformLike": true,
}
