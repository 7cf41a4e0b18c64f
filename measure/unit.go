package measure

// A UnitScore is what was found of a single unit of a layer: a row of units.parquet. Numbers that do not apply are NaN.
type UnitScore struct {
	Layer  int    // index into the layers that were measured
	Factor string // as in a Score

	Unit, Channel, Row, Column int // Unit counts from 0 within the layer; Channel, Row and Column are -1 where the unit has none

	Sign      int     // 1: it fires by high values; -1: by low ones
	Threshold float64 // it fires where Sign x value >= Sign x Threshold
	Global    float64 // share of the inputs at which it fires
	Local     float64 // share of the trajectories around its strongest inputs on which it does
	Score     float64 // Local / Global
	Null      float64 // the same around inputs drawn at random
	Selective bool    // false for a unit that is constant on the inputs: it fires always, at any threshold
	Strongest int     // index of the input that drives it most

	TransformationalVariance, SampleVariance, NormalisedVariance float64
	SameEquivariance, GoodfellowNormal, MutualInformation        float64
}

// A UnitResponse is a point of a unit's tuning curve: its value at one step of the trajectory around the input that drives it most, a
// row of curves.parquet.
type UnitResponse struct {
	Layer     int
	Factor    string
	Unit      int
	Sign      int
	Threshold float64
	Strongest int     // index of that input
	Step      int     // from 0
	Amount    float64 // gamma: an angle, a phase, frames
	Value     float64
}
