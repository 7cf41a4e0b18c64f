package measure

// A UnitScore holds the results of internal/procedure/firing for one unit: a row of units.parquet.
// Numbers that do not apply are NaN.
type UnitScore struct {
	Layer  int    // index into the measured layers
	Factor string // what varies along the trajectories, as in a Score, such as "phase"; or ""

	// Unit counts from 0 in the layer. Channel, Row and Column are -1 if the unit has none.
	Unit, Channel, Row, Column int

	Sign      int     // 1: the unit fires at high values; -1: at low values
	Threshold float64 // the unit fires where Sign * value >= Sign * Threshold
	Global    float64 // fraction of the inputs at which it fires
	Local     float64 // fraction of the steps of trajectories around its strongest inputs at which it fires
	Score     float64 // Local / Global
	Null      float64 // Score for trajectories around random inputs
	Selective bool    // false if the unit is constant on the inputs; it then always fires
	Strongest int     // index of the unit's strongest input

	// Of the library tmeasures: formulas in docs/reference/measures/firing.md.
	TransformationalVariance float64 // TV: mean over inputs of the standard deviation over steps
	SampleVariance           float64 // SV: mean over steps of the standard deviation over inputs
	NormalisedVariance       float64 // TV / SV
	SameEquivariance         float64 // TV / SV after the inverse transformation is applied to each feature map
	GoodfellowNormal         float64 // Local / Global with the threshold of a normal distribution fitted to the unit's values

	MutualInformation float64 // between firing and the class of the input, in nats
}

// A UnitResponse is a unit's value at one step of the trajectory around its strongest input: a row
// of curves.parquet.
type UnitResponse struct {
	Layer, Unit, Sign int     // as in a UnitScore
	Factor            string  // as in a UnitScore
	Threshold         float64 // as in a UnitScore
	Strongest         int     // index of the unit's strongest input
	Step              int     // from 0
	Amount            float64 // value of the transformation's parameter at this step (gamma in Goodfellow et al. 2009)
	Value             float64 // of the unit
}
