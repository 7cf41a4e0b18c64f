package scores

import (
	"github.com/noether-ml/noether/measure"
)

// A UnitRow describes one unit: a row of units.parquet. UnitScore has its statistics and factor,
// such as the phase of gratings; UnitScore.Layer is not used: Layer is the name.
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

// UnitColumns are the names of the columns in units.parquet, in order: a public contract.
var UnitColumns = []string{
	"study", "model", "layer", "depth", "data", "transform", "trial", "measure", "factor",
	"unit", "channel", "row", "column", "sign", "threshold", "global_rate", "local_rate", "score", "null", "selective", "strongest",
	"transformational_variance", "sample_variance", "normalised_variance", "same_equivariance", "goodfellow_normal", "mutual_information",
}

// A CurveRow is a point of a unit's tuning curve for its strongest input: a row of curves.parquet.
// UnitResponse documents it; its field Layer is not used.
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

// CurveColumns are the names of the columns in curves.parquet, in order: a public contract.
var CurveColumns = []string{
	"study", "model", "layer", "depth", "data", "transform", "trial", "measure", "factor",
	"unit", "sign", "threshold", "strongest", "step", "amount", "value",
}
