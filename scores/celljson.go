package scores

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"

	fastjson "github.com/goccy/go-json" // a third of the time of encoding/json

	"github.com/noether-ml/noether/measure"
)

// cellFormat is the version of the JSON of a cell.
const cellFormat = 1

// ParseCell decodes the JSON of a cell. A text that is truncated or of another format is an error.
func ParseCell(data []byte) (c Cell, err error) {
	if c, ok := scanCell(data); ok { // faster than encoding/json, for the layout of MarshalJSON
		return c, nil
	}
	err = decodeStrict(data, &c)
	return c, err
}

// appendChecksum appends a CRC-32C to an object as crc32c, to detect corruption on disk.
func appendChecksum(object []byte) []byte {
	before := object[:len(object)-1]
	return fmt.Appendf(append(bytes.Clone(before), checksumField...), `"%08x"}`+"\n", crc32.Checksum(before, castagnoli))
}

// checksumField comes before the checksum.
const checksumField = `,"crc32c":`

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errAltered = errors.New("the file was altered: its checksum does not match")

// validChecksum accepts an object without a checksum, written by an earlier version.
func validChecksum(data []byte) bool {
	end := bytes.LastIndex(data, []byte(checksumField))
	if end < 0 {
		return true
	}
	var stated [12]byte
	want := append(appendHex(append(stated[:0], '"'), crc32.Checksum(data[:end], castagnoli)), '"', '}')
	return bytes.Equal(bytes.TrimSpace(data[end+len(checksumField):]), want)
}

func appendHex(text []byte, sum uint32) []byte {
	return hex.AppendEncode(text, binary.BigEndian.AppendUint32(nil, sum))
}

// A number is a float64 in JSON: null for NaN, "inf" and "-inf". present: the field exists.
type number struct {
	value   float64
	present bool
}

func (n number) MarshalJSON() ([]byte, error) {
	switch {
	case math.IsNaN(n.value):
		return []byte("null"), nil
	case math.IsInf(n.value, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(n.value, -1):
		return []byte(`"-inf"`), nil
	}
	format := byte('f')
	if size := math.Abs(n.value); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(make([]byte, 0, 24), n.value, format, -1, 64), nil
}

func (n *number) UnmarshalJSON(data []byte) error {
	n.present = true
	switch string(data) {
	case "null":
		n.value = math.NaN()
	case `"inf"`:
		n.value = math.Inf(1)
	case `"-inf"`:
		n.value = math.Inf(-1)
	default:
		return json.Unmarshal(data, &n.value)
	}
	return nil
}

// A cellJSON is a Cell in JSON, with layerJSON for a Layer and scoreJSON for a measure.Score.
type cellJSON struct {
	Format     int         `json:"format"`
	Measure    string      `json:"measure"`
	Model      string      `json:"model"`
	OtherModel string      `json:"other_model,omitempty"`
	Data       string      `json:"data"`
	Transform  string      `json:"transform,omitempty"`
	Parameter  string      `json:"parameter,omitempty"`
	Drawn      string      `json:"drawn,omitempty"` // parameter values drawn once for all samples
	Trial      int         `json:"trial"`           // of the random draws; or MeanOverTrials
	Layers     []layerJSON `json:"layers"`
	PeakMemory int64       `json:"peak_memory,omitempty"` // in bytes
}

type layerJSON struct {
	Name   string      `json:"name,omitempty"`
	Depth  int         `json:"depth"`           // nodes on the longest path from the input; or NoDepth
	Other  string      `json:"other,omitempty"` // layer that it is compared with
	Scores []scoreJSON `json:"scores"`
}

type scoreJSON struct {
	Statistic  string   `json:"statistic"`
	Variant    string   `json:"variant,omitempty"`   // of the statistic, such as the kind of probe
	Parameter  string   `json:"parameter,omitempty"` // of the transformation; "": that of the cell
	Factor     string   `json:"factor,omitempty"`    // known property of the samples, such as hue
	Value      number   `json:"value"`
	Low        number   `json:"low"` // bounds of the confidence interval
	High       number   `json:"high"`
	Null       number   `json:"null"` // the value expected by chance
	Min        number   `json:"min"`  // the range of the statistic, to which intervals of means are limited
	Max        number   `json:"max"`
	Spread     float64  `json:"spread,omitempty"`  // half-width of what the replicates do not contain
	Freedom    float64  `json:"freedom,omitempty"` // of Spread, or of an interval without replicates
	N          int      `json:"n"`                 // number of observations
	Warnings   []string `json:"warnings,omitempty"`
	Replicates []number `json:"replicates,omitempty"` // of the jackknife, each without a group
	Left       []int    `json:"left,omitempty"`       // for each replicate the number of observations that it leaves out
}

// MarshalJSON encodes the cell, with null for NaN and "inf" and "-inf" for infinities.
func (c Cell) MarshalJSON() ([]byte, error) { return fastjson.Marshal(encodeCell(c)) }

func encodeCell(c Cell) cellJSON {
	out := cellJSON{cellFormat, c.Measure, c.Model, c.OtherModel, c.Data, c.Transform, c.Parameter, c.Drawn, c.Trial,
		make([]layerJSON, 0, len(c.Layers)), c.PeakMemory}
	for _, l := range c.Layers {
		layer := layerJSON{l.Name, l.Depth, l.Other, make([]scoreJSON, 0, len(l.Scores))}
		for i := range l.Scores {
			layer.Scores = append(layer.Scores, encodeScore(&l.Scores[i]))
		}
		out.Layers = append(out.Layers, layer)
	}
	return out
}

func encodeScore(s *measure.Score) scoreJSON {
	num := func(v float64) number { return number{value: v} }
	out := scoreJSON{Statistic: s.Statistic, Variant: s.Variant, Parameter: s.Parameter, Factor: s.Factor, Value: num(s.Value),
		Low: num(s.Low), High: num(s.High), Null: num(s.Null), Min: num(s.Min), Max: num(s.Max), Spread: s.Spread, Freedom: s.Freedom, N: s.N, Warnings: s.Warnings}
	for _, r := range s.Replicates {
		out.Replicates, out.Left = append(out.Replicates, num(r.Value)), append(out.Left, r.Left)
	}
	return out
}

// UnmarshalJSON decodes the output of MarshalJSON and rejects anything else.
func (c *Cell) UnmarshalJSON(data []byte) error {
	var in cellJSON
	if err := decodeStrict(data, &in); err != nil {
		return err
	}
	switch {
	case in.Format != cellFormat:
		return fmt.Errorf("unsupported cell format %d; this version reads format %d", in.Format, cellFormat)
	case in.Measure == "" || in.Model == "" || in.Data == "" || in.Layers == nil || in.Trial < MeanOverTrials:
		return errors.New("incomplete cell: its measure, model, data, trial or layers are missing")
	}
	out := Cell{in.Model, in.OtherModel, in.Data, in.Transform, in.Parameter,
		in.Drawn, in.Trial, in.Measure, nil, in.PeakMemory}
	for _, l := range in.Layers {
		layer := Layer{Name: l.Name, Depth: l.Depth, Other: l.Other}
		for i := range l.Scores {
			score, err := decodeScore(&l.Scores[i])
			if err != nil {
				return fmt.Errorf("layer %q, statistic %q: %w", l.Name, l.Scores[i].Statistic, err)
			}
			layer.Scores = append(layer.Scores, score)
		}
		out.Layers = append(out.Layers, layer)
	}
	*c = out
	return nil
}

func decodeScore(s *scoreJSON) (measure.Score, error) {
	for _, n := range []number{s.Value, s.Low, s.High, s.Null, s.Min, s.Max} {
		if !n.present {
			return measure.Score{}, errors.New("missing number")
		}
	}
	if s.Statistic == "" || s.N < 0 || len(s.Replicates) != len(s.Left) {
		return measure.Score{}, errors.New("invalid name, count or replicates")
	}
	out := measure.Score{
		Statistic: s.Statistic, Variant: s.Variant, Parameter: s.Parameter, Factor: s.Factor,
		Value: s.Value.value, Low: s.Low.value, High: s.High.value,
		Null: s.Null.value, Min: s.Min.value, Max: s.Max.value, Spread: s.Spread, Freedom: s.Freedom, N: s.N, Warnings: s.Warnings,
	}
	for i, r := range s.Replicates {
		out.Replicates = append(out.Replicates, measure.Replicate{Value: r.value, Left: s.Left[i]})
	}
	return out, nil
}
