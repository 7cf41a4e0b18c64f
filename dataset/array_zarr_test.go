package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// zarrOf returns the description of a 5 x 3 array in chunks of 2 x 2, with other keys set.
func zarrOf(keys map[string]any) map[string]any {
	node := map[string]any{
		"zarr_format": 3, "node_type": "array", "data_type": "float32", "fill_value": "NaN", "shape": []int{5, 3},
		"chunk_grid":         map[string]any{"name": "regular", "configuration": map[string]any{"chunk_shape": []int{2, 2}}},
		"chunk_key_encoding": map[string]any{"name": "default"},
		"codecs":             []any{bytesCodec("little")},
	}
	maps.Copy(node, keys)
	return node
}

func bytesCodec(endian string) any {
	return map[string]any{"name": "bytes", "configuration": map[string]any{"endian": endian}}
}

func writeZarr(t *testing.T, dir string, node map[string]any, chunks map[string][]byte) string {
	t.Helper()
	raw, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	chunks = maps.Clone(chunks)
	if chunks == nil {
		chunks = map[string][]byte{}
	}
	chunks[zarrFile] = raw
	for name, raw := range chunks {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// chunksOf returns the chunks of the 5 x 3 array with the values 0, 1, 2 and so on, by the name that
// key gives the chunk of a row and a column. The padding is -1.
func chunksOf(key string, encode func(...float32) []byte) map[string][]byte {
	chunks := map[string][]byte{}
	for r := range 3 {
		for c := range 2 {
			values := []float32{-1, -1, -1, -1}
			for i := range 2 {
				for j := range 2 {
					if row, column := 2*r+i, 2*c+j; row < 5 && column < 3 {
						values[2*i+j] = float32(3*row + column)
					}
				}
			}
			chunks[fmt.Sprintf(key, r, c)] = encode(values...)
		}
	}
	return chunks
}

func little(values ...float32) []byte {
	raw, _ := binary.Append(nil, binary.LittleEndian, values)
	return raw
}

// TestZarr reads arrays whose chunks divide both axes. Tests of the Python package read arrays that
// its library wrote.
func TestZarr(t *testing.T) {
	t.Parallel()
	compressed := func(values ...float32) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		if _, err := z.Write(little(values...)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { encoder.Close() })
	checked := func(values ...float32) []byte {
		raw := encoder.EncodeAll(little(values...), nil)
		return binary.LittleEndian.AppendUint32(raw, crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli)))
	}
	const missing = "c/1/0" // rows 2 and 3, columns 0 and 1
	for name, c := range map[string]struct {
		keys   map[string]any
		chunks map[string][]byte
		fill   float32 // of the missing chunk; 0: there is none
	}{
		"plain": {nil, chunksOf("c/%d/%d", little), 0},
		"big-endian": {map[string]any{"codecs": []any{bytesCodec("big")}},
			chunksOf("c/%d/%d", func(v ...float32) []byte { raw, _ := binary.Append(nil, binary.BigEndian, v); return raw }), 0},
		"gzip": {map[string]any{"codecs": []any{bytesCodec("little"), map[string]any{"name": "gzip", "configuration": map[string]any{"level": 5}}}}, chunksOf("c/%d/%d", compressed), 0},
		"zstd with checksum": {map[string]any{"codecs": []any{bytesCodec("little"), map[string]any{"name": "zstd", "configuration": map[string]any{"level": 0, "checksum": false}}, "crc32c"}},
			chunksOf("c/%d/%d", checked), 0},
		"keys of version 2": {map[string]any{"chunk_key_encoding": "v2"}, chunksOf("%d.%d", little), 0},
		"points in keys": {map[string]any{"chunk_key_encoding": map[string]any{"name": "default", "configuration": map[string]any{"separator": "."}}},
			chunksOf("c.%d.%d", little), 0},
		"bytes": {map[string]any{"data_type": "uint8", "fill_value": 0, "codecs": []any{map[string]any{"name": "bytes"}}},
			chunksOf("c/%d/%d", func(v ...float32) (raw []byte) {
				for _, x := range v {
					raw = append(raw, byte(x))
				}
				return raw
			}), 0},
		"filled":                {map[string]any{"fill_value": 2.5}, chunksOf("c/%d/%d", little), 2.5},
		"filled by infinity":    {map[string]any{"fill_value": "-Infinity"}, chunksOf("c/%d/%d", little), float32(math.Inf(-1))},
		"filled by hexadecimal": {map[string]any{"fill_value": "0x3fc00000"}, chunksOf("c/%d/%d", little), 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.fill != 0 {
				delete(c.chunks, missing)
			}
			dir := writeZarr(t, t.TempDir(), zarrOf(c.keys), c.chunks)
			a, err := ReadArray(t.Context(), dir, "")
			if err != nil || !slices.Equal(a.Shape, []int{5, 3}) {
				t.Fatal(a.Shape, err)
			}
			for i, got := range a.Data {
				want := float32(i)
				if row, column := i/3, i%3; c.fill != 0 && row/2 == 1 && column < 2 {
					want = c.fill
				}
				if got != want {
					t.Errorf("value %d is %v, want %v", i, got, want)
				}
			}
			f, err := OpenArrayFile(t.Context(), dir, "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			row := make([]float64, 6)
			if err := f.Rows([]int{4, 0}, row); err != nil || !slices.Equal(row, []float64{12, 13, 14, 0, 1, 2}) {
				t.Errorf("rows 4 and 0 are %v: %v", row, err)
			}
		})
	}
}

// TestZarrGroup reads the arrays below a group by their paths.
func TestZarrGroup(t *testing.T) {
	t.Parallel()
	dir := writeZarr(t, t.TempDir(), map[string]any{"zarr_format": 3, "node_type": "group"}, nil)
	writeZarr(t, filepath.Join(dir, "b", "x"), zarrOf(nil), chunksOf("c/%d/%d", little))
	writeZarr(t, filepath.Join(dir, "a.zarr"), zarrOf(nil), chunksOf("c/%d/%d", little))
	keys, err := ArrayKeys(t.Context(), dir)
	if err != nil || !slices.Equal(keys, []string{"a.zarr", "b/x"}) {
		t.Errorf("keys %q: %v", keys, err)
	}
	if a, err := ReadArray(t.Context(), dir, "b/x"); err != nil || a.Data[14] != 14 {
		t.Errorf("%v: %v", a.Data, err)
	}
	if _, err := ReadArray(t.Context(), dir, "c"); err == nil || !strings.Contains(err.Error(), `unknown array "c"`) {
		t.Error(err)
	}
	if _, err := ReadArray(t.Context(), filepath.Join(dir, "a.zarr"), "c"); err == nil || !strings.Contains(err.Error(), "one array without a key") {
		t.Error(err)
	}
}

// TestBadZarr checks that what cannot be read is an error of one line.
func TestBadZarr(t *testing.T) {
	t.Parallel()
	codec := func(names ...string) map[string]any {
		codecs := []any{}
		for _, name := range names {
			codecs = append(codecs, map[string]any{"name": name, "configuration": map[string]any{"endian": "little"}})
		}
		return map[string]any{"codecs": codecs}
	}
	whole := chunksOf("c/%d/%d", little)
	with := func(raw []byte) map[string][]byte {
		chunks := maps.Clone(whole)
		chunks["c/1/0"] = raw
		return chunks
	}
	gzipped := map[string]any{"codecs": []any{bytesCodec("little"), map[string]any{"name": "gzip"}}}
	var large bytes.Buffer
	z := gzip.NewWriter(&large)
	_, err := z.Write(make([]byte, 1<<20))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	grid := func(shape any) map[string]any {
		return map[string]any{"chunk_grid": map[string]any{"name": "regular", "configuration": map[string]any{"chunk_shape": shape}}}
	}
	for name, c := range map[string]struct {
		keys   map[string]any
		chunks map[string][]byte
		want   string
	}{
		"no chunks":           {nil, nil, "has no chunks"},
		"a short chunk":       {nil, with(make([]byte, 15)), "c/1/0 has 15 bytes, want 16"},
		"a long chunk":        {nil, with(make([]byte, 17)), "c/1/0 has 17 bytes, want 16"},
		"no gzip":             {gzipped, whole, "gzip: invalid header"},
		"cut gzip":            {gzipped, map[string][]byte{"c/0/0": large.Bytes()[:20]}, "end too early"},
		"too much":            {gzipped, map[string][]byte{"c/0/0": large.Bytes()}, "17 bytes or more, want 16"},
		"no zstd":             {codec("bytes", "zstd"), whole, "magic number"},
		"checksum":            {codec("bytes", "crc32c"), whole, "differ from the checksum"},
		"blosc":               {codec("bytes", "blosc"), whole, `codec "blosc" is not supported`},
		"sharding":            {codec("sharding_indexed"), whole, `codec "sharding_indexed" is not supported`},
		"transposed":          {codec("transpose", "bytes"), whole, `codec "transpose" is not supported`},
		"no codec":            {codec(), whole, "no codec bytes"},
		"middle-endian":       {map[string]any{"codecs": []any{bytesCodec("middle")}}, whole, `endian of the codec bytes is "middle"`},
		"complex":             {map[string]any{"data_type": "complex64"}, whole, `"complex64" is not supported`},
		"structured":          {map[string]any{"data_type": map[string]any{"name": "struct"}}, whole, "is not supported"},
		"version 2":           {map[string]any{"zarr_format": 2}, whole, "zarr_format 2"},
		"a table":             {map[string]any{"node_type": "table"}, whole, `node_type "table"`},
		"negative":            {map[string]any{"shape": []int{-5, 3}}, whole, "negative size"},
		"empty":               {map[string]any{"shape": []int{0, 3}}, whole, "is empty"},
		"overflow":            {map[string]any{"shape": []int{1 << 40, 1 << 40}}, whole, "too few for shape"},
		"a scalar":            {map[string]any{"shape": []int{}, "chunk_grid": map[string]any{"name": "regular", "configuration": map[string]any{"chunk_shape": []int{}}}}, whole, "a scalar"},
		"other chunks":        {grid([]int{2}), whole, "chunks of the shape [2] do not divide"},
		"chunks of nothing":   {grid([]int{0, 2}), whole, "chunks of the shape [0 2] do not divide"},
		"chunks of text":      {grid("x"), whole, "zarr.json: "},
		"huge chunks":         {grid([]int{1 << 40, 1 << 40}), whole, "are too large"},
		"huge gzipped chunks": {map[string]any{"codecs": gzipped["codecs"], "chunk_grid": grid([]int{1 << 20, 1 << 22})["chunk_grid"]}, whole, "exceed"},
		"grid":                {map[string]any{"chunk_grid": map[string]any{"name": "rectilinear"}}, whole, `grid "rectilinear" is not supported`},
		"keys":                {map[string]any{"chunk_key_encoding": "mine"}, whole, `encoding "mine" is not supported`},
		"separator":           {map[string]any{"chunk_key_encoding": map[string]any{"name": "default", "configuration": map[string]any{"separator": "../"}}}, whole, `is "../"`},
		"fill":                {map[string]any{"fill_value": "nothing"}, whole, `fill value is "nothing"`},
		"fill of null":        {map[string]any{"fill_value": nil}, whole, "fill value is null"},
		"fill too large":      {map[string]any{"data_type": "uint8", "fill_value": 256}, whole, "fill value is 256"},
		"transformers":        {map[string]any{"storage_transformers": []any{map[string]any{"name": "x"}}}, whole, "transformers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := writeZarr(t, t.TempDir(), zarrOf(c.keys), c.chunks)
			_, err := ReadArray(t.Context(), dir, "")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want one line with %q and the folder", err, c.want)
			}
			if !IsZarrArray(dir) {
				t.Error("a damaged array is taken for another folder")
			}
		})
	}
	dir := t.TempDir()
	if _, err := ReadArray(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".zarray"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadArray(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, zarrFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadArray(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), "unexpected end of JSON") {
		t.Error(err)
	}
}
