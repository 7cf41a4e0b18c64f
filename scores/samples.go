package scores

import (
	"math"
)

// A SampleRow is the value of a statistic for one sample: a row of samples.parquet.
type SampleRow struct {
	Study     string
	Model     string
	Layer     string // "" for values of the whole model
	Data      string
	Transform string
	Parameter string // value of the transformation's parameter
	Trial     int    // which repetition of the random draws, from 0; or MeanOverTrials
	Measure   string
	Statistic string
	Index     int    // index of the sample in its data set
	Name      string // name of the sample
	Label     int    // class; negative if unknown
	Value     float64
	// OtherModel is the second model of a comparison, else "".
	OtherModel string
}

// SampleColumns are the names of the columns in samples.parquet, in order. They are a public
// contract; earlier files lack other_model.
var SampleColumns = []string{
	"study", "model", "layer", "data", "transform", "parameter", "trial", "measure", "statistic", "index", "name", "label", "value", "other_model",
}

// Row returns the value as a score of a single sample.
func (s SampleRow) Row() Row {
	nan := math.NaN()
	return Row{Study: s.Study, Model: s.Model, OtherModel: s.OtherModel, Layer: s.Layer, Depth: NoDepth, Data: s.Data, Transform: s.Transform, Parameter: s.Parameter,
		Trial: s.Trial, Measure: s.Measure, Statistic: s.Statistic, Value: s.Value, Low: nan, High: nan, Null: nan, N: 1}
}

// SampleTerms returns the names of the per-sample values whose mean a statistic is: of the value,
// or, if minus is not empty, of the difference between two.
func SampleTerms(measure, statistic string) (of, minus string) {
	if measure == "accuracy" {
		switch statistic {
		case "clean", "moved":
			return "correct-" + statistic, ""
		case "drop":
			return "correct-clean", "correct-moved"
		}
	}
	return statistic, ""
}
