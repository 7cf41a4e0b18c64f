package parquetfile_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/scores"
)

// TestRepeatedRowsAreRefused checks that a file of few bytes that states millions of rows is
// refused before they are read, as is a text of megabytes that a dictionary repeats.
func TestRepeatedRowsAreRefused(t *testing.T) {
	t.Parallel()
	written := make([]scores.SampleRow, 1<<20+1)
	var b bytes.Buffer
	w := parquetfile.NewSampleWriter(&b)
	if err := w.Write(written...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	read := 0
	err := parquetfile.ReadSamples(bytes.NewReader(b.Bytes()), int64(b.Len()), func(scores.SampleRow) { read++ })
	if err == nil || !strings.Contains(err.Error(), "states 1048577 rows or more") || read > 0 {
		t.Errorf("%d rows of a file of %d bytes, error %v; want none and an error", read, b.Len(), err)
	}
	b.Reset()
	if err := parquetfile.Write(&b, []scores.Row{{Warning: strings.Repeat("x", 2<<20)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := parquetfile.Read(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil {
		t.Error("a text of 2 MiB is no error")
	}
}

// FuzzRead checks that any bytes are an error or rows, for each of the tables.
func FuzzRead(f *testing.F) {
	var rows, samples, units, curves bytes.Buffer
	if err := parquetfile.Write(&rows, []scores.Row{{Model: "m", Value: 1}, {Model: "n", Depth: -1, Value: 2, Warning: "w"}}); err != nil {
		f.Fatal(err)
	}
	s, u, c := parquetfile.NewSampleWriter(&samples), parquetfile.NewUnitWriter(&units), parquetfile.NewCurveWriter(&curves)
	if s.Write(scores.SampleRow{Model: "m", Index: 3}) != nil || u.Write(scores.UnitRow{Model: "m"}) != nil || c.Write(scores.CurveRow{Model: "m"}) != nil ||
		s.Close() != nil || u.Close() != nil || c.Close() != nil {
		f.Fatal("a table cannot be written")
	}
	for _, b := range []*bytes.Buffer{&rows, &samples, &units, &curves} {
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, size := bytes.NewReader(data), int64(len(data))
		if got, err := parquetfile.Read(r, size); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%d rows, and an error of several lines: %v", len(got), err)
		}
		parquetfile.ReadSamples(r, size, func(scores.SampleRow) {})
		parquetfile.ReadUnits(r, size, func(scores.UnitRow) {})
		parquetfile.ReadCurves(r, size, func(scores.CurveRow) {})
	})
}
