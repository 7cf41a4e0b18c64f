package scores

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/noether-ml/noether/internal/plainjson"
	"github.com/noether-ml/noether/measure"
)

// cellFormat is the version of the JSON of a cell.
const cellFormat = 1

// ParseCell decodes the JSON of a cell. A text that is truncated, of another format or laid out in
// another way than by MarshalJSON is an error.
func ParseCell(data []byte) (c Cell, err error) {
	err = c.UnmarshalJSON(data)
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

// A number is a float64 in JSON: null for NaN, "inf" and "-inf".
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	return plainjson.Append(nil, func(j *plainjson.Codec) { j.Float("", (*float64)(&n)) }), nil
}

// MarshalJSON encodes the cell, with null for NaN and "inf" and "-inf" for infinities.
func (c Cell) MarshalJSON() ([]byte, error) {
	return plainjson.Append(make([]byte, 0, 1024), c.code), nil
}

// UnmarshalJSON decodes the output of MarshalJSON and rejects anything else.
func (c *Cell) UnmarshalJSON(data []byte) error {
	var out Cell
	err := plainjson.Read(data, out.code)
	switch {
	case err != nil:
		return fmt.Errorf("reading a cell: %w", err)
	case out.Measure == "" || out.Model == "" || out.Data == "" || out.Trial < MeanOverTrials:
		return errors.New("incomplete cell: its measure, model, data or trial are missing")
	}
	*c = out
	return nil
}

// code writes or reads the cell.
func (c *Cell) code(j *plainjson.Codec) {
	format, peak := cellFormat, int(c.PeakMemory)
	if j.Int(`{"format":`, &format); format != cellFormat {
		j.Fail(fmt.Errorf("unsupported cell format %d; this version reads format %d", format,
			cellFormat))
	}
	j.String(`,"measure":`, &c.Measure)
	j.String(`,"model":`, &c.Model)
	j.Optional(`,"other_model":`, &c.OtherModel)
	j.String(`,"data":`, &c.Data)
	j.Optional(`,"transform":`, &c.Transform)
	j.Optional(`,"parameter":`, &c.Parameter)
	j.Optional(`,"drawn":`, &c.Drawn)
	j.Int(`,"trial":`, &c.Trial)
	plainjson.List(j, `,"layers":`, &c.Layers, func(l *Layer) { l.code(j) })
	if j.Has(`,"peak_memory":`, peak != 0) {
		if j.Int("", &peak); j.Reads() {
			c.PeakMemory = int64(peak)
		}
	}
	j.Literal("}")
}

func (l *Layer) code(j *plainjson.Codec) {
	j.Literal("{")
	if j.Optional(`"name":`, &l.Name); l.Name != "" {
		j.Literal(",")
	}
	j.Int(`"depth":`, &l.Depth)
	j.Optional(`,"other":`, &l.Other)
	if j.Reads() { // room for all scores, since one is large
		rest := j.Rest()
		if end := bytes.Index(rest, []byte("}]}")); end >= 0 {
			rest = rest[:end]
		}
		if n := bytes.Count(rest, []byte(`"statistic":`)); n > 0 {
			l.Scores = make([]measure.Score, 0, n)
		}
	}
	plainjson.List(j, `,"scores":`, &l.Scores, func(s *measure.Score) { codeScore(j, s) })
	j.Literal("}")
}

func codeScore(j *plainjson.Codec, s *measure.Score) {
	j.String(`{"statistic":`, &s.Statistic)
	j.Optional(`,"variant":`, &s.Variant)
	j.Optional(`,"parameter":`, &s.Parameter)
	j.Optional(`,"factor":`, &s.Factor)
	j.Float(`,"value":`, &s.Value)
	j.Float(`,"low":`, &s.Low)
	j.Float(`,"high":`, &s.High)
	j.Float(`,"null":`, &s.Null)
	j.Float(`,"min":`, &s.Min)
	j.Float(`,"max":`, &s.Max)
	j.Int(`,"n":`, &s.N)
	if j.Has(`,"warnings":`, len(s.Warnings) > 0) {
		plainjson.List(j, "", &s.Warnings, func(text *string) { j.String("", text) })
	}
	if j.Has(`,"replicates":`, len(s.Replicates) > 0) {
		plainjson.List(j, "", &s.Replicates, func(r *measure.Replicate) { j.Float("", &r.Value) })
		left := make([]int, 0,
			len(s.Replicates)) // by replicate, the number of samples that it leaves out
		for _, r := range s.Replicates {
			left = append(left, r.Left)
		}
		if j.Reads() {
			left = left[:0]
		}
		plainjson.List(j, `,"left":`, &left, func(n *int) { j.Int("", n) })
		if len(left) != len(s.Replicates) {
			j.Fail(errors.New("invalid count or replicates"))
			return
		}
		for i := range s.Replicates {
			if j.Reads() {
				s.Replicates[i].Left = left[i]
			}
		}
	}
	if j.Literal("}"); s.Statistic == "" || s.N < 0 {
		j.Fail(errors.New("a score has no statistic, or a negative count"))
	}
}
