package scores

import (
	"github.com/noether-ml/noether/measure"
)

// A UnitRow describes one unit: a row of units.parquet. Depth is the number of nodes on the longest
// path from the input to the layer, and Trial is the number of the repetition of all random draws.
// The embedded UnitScore holds the unit's statistics and the factor (what varies, such as the phase
// of gratings, if there are several), and documents them; its field Layer is not used, because
// Layer here is the name of the layer.
type UnitRow struct {
	Study     string
	Model     string
	Layer     string
	Depth     int
	Data      string
	Transform string
	Trial     int
	Measure   string
	measure.UnitScore
}

// UnitColumns are the names of the columns in units.parquet, in order. They are a public contract.
var UnitColumns = []string{
	"study", "model", "layer", "depth", "data", "transform", "trial", "measure", "factor",
	"unit", "channel", "row", "column", "sign", "threshold", "global_rate", "local_rate", "score", "null", "selective", "strongest",
	"transformational_variance", "sample_variance", "normalised_variance", "same_equivariance", "goodfellow_normal", "mutual_information",
}

// A CurveRow is a point of the tuning curve of a unit, its values against the amount of a
// transformation of its strongest input: a row of curves.parquet. The embedded UnitResponse
// documents the unit, the point and the factor; its field Layer is not used.
type CurveRow struct {
	Study     string
	Model     string
	Layer     string
	Depth     int
	Data      string
	Transform string
	Trial     int
	Measure   string
	measure.UnitResponse
}

// CurveColumns are the names of the columns in curves.parquet, in order. They are a public
// contract.
var CurveColumns = []string{
	"study", "model", "layer", "depth", "data", "transform", "trial", "measure", "factor",
	"unit", "sign", "threshold", "strongest", "step", "amount", "value",
}
