package scores

import "encoding/json"

// MarshalJSON encodes a row as an object whose keys are the names of the columns. Fields empty in
// CSV are omitted, except value, which is null. Infinities are "inf" and "-inf".
func (r Row) MarshalJSON() ([]byte, error) {
	type object struct {
		Study      string  `json:"study"`
		Model      string  `json:"model,omitempty"`
		Layer      string  `json:"layer,omitempty"`
		Depth      *int    `json:"depth,omitempty"`
		OtherModel string  `json:"other_model,omitempty"`
		OtherLayer string  `json:"other_layer,omitempty"`
		Data       string  `json:"data,omitempty"`
		Transform  string  `json:"transform,omitempty"`
		Parameter  string  `json:"parameter,omitempty"`
		Trial      *int    `json:"trial,omitempty"`
		Measure    string  `json:"measure"`
		Variant    string  `json:"variant,omitempty"`
		Factor     string  `json:"factor,omitempty"`
		Statistic  string  `json:"statistic"`
		Value      number  `json:"value"`
		Low        *number `json:"low,omitempty"`
		High       *number `json:"high,omitempty"`
		Null       *number `json:"null,omitempty"`
		N          int     `json:"n"`
		Warning    string  `json:"warning,omitempty"`
		P          float64 `json:"p,omitempty"`
		PAdjusted  float64 `json:"p_adjusted,omitempty"`
	}
	o := object{Study: r.Study, Model: r.Model, Layer: r.Layer, OtherModel: r.OtherModel, OtherLayer: r.OtherLayer, Data: r.Data,
		Transform: r.Transform, Parameter: r.Parameter, Measure: r.Measure, Variant: r.Variant, Factor: r.Factor, Statistic: r.Statistic,
		Value: number{value: r.Value}, Low: optionalNumber(r.Low), High: optionalNumber(r.High), Null: optionalNumber(r.Null), N: r.N, Warning: r.Warning, P: r.P, PAdjusted: r.PAdjusted}
	if r.Depth != NoDepth { // not a score of the whole model
		o.Depth = &r.Depth
	}
	if r.Trial != MeanOverTrials {
		o.Trial = &r.Trial
	}
	return json.Marshal(o)
}

func optionalNumber(v float64) *number {
	if v != v { // NaN
		return nil
	}
	return &number{value: v}
}
