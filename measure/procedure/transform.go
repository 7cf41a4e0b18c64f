package procedure

import (
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// A Transform is a transformation of the input with all values that it takes.
type Transform struct {
	Name     string
	Identity string  // identifies the transformation with its settings
	PerTrial bool    // drawn once for a trial; else anew for each sample
	Values   []Value // one for each value of a list; else one, which may have a range
	// Range is what the number that describes a draw (transform.Parameter) lies within, over all
	// values; nil where there is no such number.
	Range *transform.Distribution
}

// A Value is one value of a transformation, or its range.
type Value struct {
	Parameter string // as in scores; "" where there is no list
	Transform transform.Transform
}

// Draw returns the Op of a value for the sample with an index in the source. It is the one that
// accumulators with the same key get. All values of a list are drawn with the same noise.
func (t *Transform) Draw(k measure.Key, value, index int) transform.Op {
	return Draw(t.Values[value].Transform, t.PerTrial, k, index)
}

// Draw returns the Op of a transformation for a sample. A transformation that is drawn once for a
// trial has the same parameters for all samples, and separate noise for each.
func Draw(t transform.Transform, perTrial bool, k measure.Key, index int) transform.Op {
	if !perTrial {
		return t.Draw(seed.Rand(k.Seed, "transform", k.Data, k.Transform, k.Trial, index))
	}
	op := t.Draw(seed.Rand(k.Seed, "transform", k.Data, k.Transform, k.Trial))
	return transform.Renew(op, seed.Rand(k.Seed, "noise", k.Data, k.Transform, k.Trial, index))
}
