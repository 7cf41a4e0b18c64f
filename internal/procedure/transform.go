package procedure

import (
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// A Transform is a transformation of the input with all values that it takes. An Op is the
// transformation with its parameters drawn, such as a rotation by 12 degrees.
type Transform struct {
	Name     string
	Identity string  // identifies the transformation with its settings
	PerTrial bool    // drawn once for a trial (a repetition of all draws); else for each sample
	Values   []Value // one for each value of a listed parameter; without a list a single one
	// Range is the range, over all Values, of the parameter of the Ops that Draw returns
	// (transform.Parameter); nil if they have no numeric parameter.
	Range *transform.Distribution
}

// A Value is a transformation with one value of the listed parameter or, without a list, the
// transformation as it is. Its other parameters may be drawn from ranges.
type Value struct {
	Parameter string // the value, as in the column parameter of scores; "" if there is no list
	Transform transform.Transform
}

// ReadyPairs stands for the transformation of ready-made pairs, whose x and T(x) come from files:
// T(x) is Sample.Transformed. Its only value has no Transform, so Draw must not be called.
var ReadyPairs = &Transform{Name: "pair", Identity: "pair", PerTrial: true, Values: []Value{{}}}

// Draw returns the Op of a value, that is, the transformation with the parameters that are drawn
// for the sample with the given index in the data. The key k holds the seed, the names of the data
// and the transformation, and the trial. The same key, value and index give the same Op. All values
// of a list use the same random numbers.
func (t *Transform) Draw(k measure.Key, value, index int) transform.Op {
	return Draw(t.Values[value].Transform, t.PerTrial, k, index)
}

// Draw returns the Op of a transformation for the sample with the given index in the data. If
// perTrial is set, the parameters are the same for all samples of a trial, but noise is not: Renew
// draws it for each sample.
func Draw(t transform.Transform, perTrial bool, k measure.Key, index int) transform.Op {
	if !perTrial {
		return t.Draw(seed.Rand(k.Seed, "transform", k.Data, k.Transform, k.Trial, index))
	}
	op := t.Draw(seed.Rand(k.Seed, "transform", k.Data, k.Transform, k.Trial))
	return transform.Renew(op, seed.Rand(k.Seed, "noise", k.Data, k.Transform, k.Trial, index))
}
