package scores

import (
	"math"
	"strconv"

	"github.com/noether-ml/noether/internal/plainjson"
	"github.com/noether-ml/noether/measure"
)

// MarshalJSON encodes the cell, with null for NaN and "inf" and "-inf" for infinities. It equals
// that of encoding/json for a cellJSON, in a fifth of the time: a merge may write 100,000 cells.
func (c Cell) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt(append(make([]byte, 0, 1024), `{"format":`...), cellFormat, 10)
	b = appendText(b, `,"measure":`, c.Measure)
	b = appendText(b, `,"model":`, c.Model)
	b = appendOptional(b, `,"other_model":`, c.OtherModel)
	b = appendText(b, `,"data":`, c.Data)
	b = appendOptional(b, `,"transform":`, c.Transform)
	b = appendOptional(b, `,"parameter":`, c.Parameter)
	b = appendOptional(b, `,"drawn":`, c.Drawn)
	b = strconv.AppendInt(append(b, `,"trial":`...), int64(c.Trial), 10)
	b = plainjson.AppendList(append(b, `,"layers":`...), c.Layers, appendLayer)
	if c.PeakMemory != 0 {
		b = strconv.AppendInt(append(b, `,"peak_memory":`...), c.PeakMemory, 10)
	}
	return append(b, '}'), nil
}

func appendLayer(b []byte, l Layer) []byte {
	b = append(b, '{')
	if l.Name != "" {
		b = append(appendText(b, `"name":`, l.Name), ',')
	}
	b = strconv.AppendInt(append(b, `"depth":`...), int64(l.Depth), 10)
	b = appendOptional(b, `,"other":`, l.Other)
	return append(plainjson.AppendList(append(b, `,"scores":`...), l.Scores, appendScore), '}')
}

// "left" is the number of observations left out of a replicate.
func appendScore(b []byte, s measure.Score) []byte {
	b = appendText(b, `{"statistic":`, s.Statistic)
	b = appendOptional(b, `,"variant":`, s.Variant)
	b = appendOptional(b, `,"parameter":`, s.Parameter)
	b = appendOptional(b, `,"factor":`, s.Factor)
	b = appendNumber(append(b, `,"value":`...), s.Value)
	b = appendNumber(append(b, `,"low":`...), s.Low)
	b = appendNumber(append(b, `,"high":`...), s.High)
	b = appendNumber(append(b, `,"null":`...), s.Null)
	b = appendNumber(append(b, `,"min":`...), s.Min)
	b = appendNumber(append(b, `,"max":`...), s.Max)
	b = strconv.AppendInt(append(b, `,"n":`...), int64(s.N), 10)
	if len(s.Warnings) > 0 {
		b = plainjson.AppendList(append(b, `,"warnings":`...), s.Warnings, func(b []byte, text string) []byte { return appendText(b, "", text) })
	}
	if len(s.Replicates) > 0 {
		b = plainjson.AppendList(append(b, `,"replicates":`...), s.Replicates, func(b []byte, r measure.Replicate) []byte { return appendNumber(b, r.Value) })
		b = plainjson.AppendList(append(b, `,"left":`...), s.Replicates, func(b []byte, r measure.Replicate) []byte { return strconv.AppendInt(b, int64(r.Left), 10) })
	}
	return append(b, '}')
}

// appendOptional appends before and then text as a JSON string, or nothing if text is empty.
func appendOptional(b []byte, before, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, before, text)
}

// appendText appends before as it is and then text as a JSON string.
func appendText(b []byte, before, text string) []byte {
	return plainjson.AppendText(append(b, before...), text)
}

func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "null"...)
	case math.IsInf(v, 1):
		return append(b, `"inf"`...)
	case math.IsInf(v, -1):
		return append(b, `"-inf"`...)
	}
	return plainjson.AppendFloat(b, v)
}
