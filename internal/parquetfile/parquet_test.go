package parquetfile_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/scores"
)

// equal returns how two values differ, or "", with NaN equal to NaN and nil equal to an empty
// slice.
func equal(a, b any) string { return cmp.Diff(a, b, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()) }

var anyRow = rapid.Custom(func(t *rapid.T) scores.Row {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 0.1, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1)}))
	s := func(name string) string { return rapid.String().Draw(t, name) }
	v := func(name string) float64 { return number.Draw(t, name) }
	return scores.Row{
		Study: s("study"), Model: s("model"), Layer: s("layer"), Depth: rapid.IntRange(-1, 99).Draw(t, "depth"),
		OtherModel: s("other model"), OtherLayer: s("other layer"), Data: s("data"), Transform: s("transform"), Parameter: s("parameter"),
		Trial: rapid.IntRange(-1, 5).Draw(t, "trial"), Measure: s("measure"), Variant: s("variant"), Factor: s("factor"),
		Statistic: s("statistic"), Value: v("value"), Low: v("low"), High: v("high"), Null: v("null"),
		N: rapid.IntRange(0, 1<<40).Draw(t, "n"), Warning: s("warning"),
		P: rapid.SampledFrom([]float64{0, 1e-300, 0.01, 1}).Draw(t, "p"), PAdjusted: rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "adjusted p"),
	}
})

func TestParquetRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Repeated 300 times, they are more rows than a batch. NaN is a null value in Parquet.
		few := rapid.SliceOfN(anyRow, 1, 4).Draw(t, "rows")
		rows := slices.Repeat(few, rapid.SampledFrom([]int{0, 1, 1, 1, 300}).Draw(t, "times"))
		var b bytes.Buffer
		if err := parquetfile.Write(&b, rows); err != nil {
			t.Fatal(err)
		}
		got, err := parquetfile.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if d := equal(rows, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestDamagedParquetIsAnError checks that a truncated file gives an error, and that a file with one
// changed bit gives an error or all rows. For some bits the error is that columns are misaligned:
// the number of values in a page header is wrong. A table of per-sample values gives an error too.
func TestDamagedParquetIsAnError(t *testing.T) {
	t.Parallel()
	written := make([]scores.Row, 40)
	for i := range written {
		written[i] = scores.Row{Model: "m", Layer: strconv.Itoa(i), Value: float64(i)}
	}
	var b bytes.Buffer
	if err := parquetfile.Write(&b, written); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	for n := 0; n < len(data); n += 13 { // not every length, which would take long
		if _, err := parquetfile.Read(bytes.NewReader(data[:n]), int64(n)); err == nil {
			t.Fatalf("the first %d of %d bytes are read without error", n, len(data))
		}
	}
	misaligned := 0
	for i := 0; i < len(data); {
		bad := slices.Clone(data)
		bad[i] ^= 0x10
		rows, err := parquetfile.Read(bytes.NewReader(bad), int64(len(bad)))
		switch {
		case err == nil && len(rows) != len(written):
			t.Errorf("with byte %d damaged, %d rows of %d are read without error", i, len(rows), len(written))
		case err != nil && strings.Contains(err.Error(), "misaligned"):
			misaligned++
		}
		if i++; i > 200 { // after the first pages and their headers, every 13th byte
			i += 12
		}
	}
	if misaligned == 0 {
		t.Error("no damaged byte gives the error of misaligned columns")
	}
	var other bytes.Buffer
	if err := parquetfile.NewSampleWriter(&other).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := parquetfile.Read(bytes.NewReader(other.Bytes()), int64(other.Len())); err == nil || !strings.Contains(err.Error(), `no column "depth"`) {
		t.Errorf("another table: error %v, want one with %q", err, `no column "depth"`)
	}
}

// TestForeignParquetIsAnError checks files that Write cannot have written but that the
// Parquet library would try to read.
func TestForeignParquetIsAnError(t *testing.T) {
	t.Parallel()
	type row struct {
		Study string `parquet:"study"`
		Model int64  `parquet:"model"`
	}
	write := func(codec compress.Codec) []byte {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.Compression(codec))
		if _, err := w.Write([]row{{"s", 1}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := write(&zstd.Codec{})
	long := slices.Clone(good) // its footer claims the length of the whole file
	binary.LittleEndian.PutUint32(long[len(long)-8:], uint32(len(long)))
	for want, file := range map[string][]byte{
		"too short":                          []byte("PAR1"), // the magic number alone
		"footer is larger than the file":     long,
		"compressed by SNAPPY, not ZSTD":     write(&snappy.Codec{}),
		`column "model" of the Parquet file`: good,
	} {
		if _, err := parquetfile.Read(bytes.NewReader(file), int64(len(file))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// TestSamplesRoundTrip writes values of a statistic for single samples, in batches, and reads them.
func TestSamplesRoundTrip(t *testing.T) {
	t.Parallel()
	var want []scores.SampleRow
	for i := range 1000 {
		want = append(want, scores.SampleRow{
			Study: "s", Model: "m", Data: "d", Transform: "turn", Parameter: "90", Trial: i % 2, Measure: "accuracy", Statistic: "correct-clean",
			Index: i, Name: "test_batch.bin#17", Label: i%3 - 1, Value: 1 / float64(i%5), // label -1: none; value +Inf for every fifth sample
		})
	}
	want[7].Value = math.NaN()
	want[8].OtherModel = "second"
	var b bytes.Buffer
	w := parquetfile.NewSampleWriter(&b)
	for batch := range slices.Chunk(want, 300) {
		if err := w.Write(batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []scores.SampleRow
	if err := parquetfile.ReadSamples(bytes.NewReader(b.Bytes()), int64(b.Len()), func(r scores.SampleRow) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if d := equal(want, got); d != "" {
		t.Fatal(d)
	}
}
