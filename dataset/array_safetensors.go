package dataset

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxSafetensorsHeader is the largest header that the format allows.
const maxSafetensorsHeader = 100_000_000

// safetensorsTypes has NumPy's letter and the number of bytes of the types of safetensors.
var safetensorsTypes = map[string]struct {
	kind  byte
	bytes int
}{
	"F64": {'f', 8}, "F32": {'f', 4}, "F16": {'f', 2}, "BF16": {'B', 2}, "BOOL": {'b', 1},
	"I64": {'i', 8}, "I32": {'i', 4}, "I16": {'i', 2}, "I8": {'i', 1}, "U64": {'u', 8}, "U32": {'u', 4}, "U16": {'u', 2}, "U8": {'u', 1},
}

// readSafetensors lists the arrays of a safetensors file: eight bytes with the length of the
// header, a JSON object that describes the arrays, and their values.
func (a *archive) readSafetensors(length uint64) error {
	if length > maxSafetensorsHeader || int64(length) > a.data.size-8 {
		return fmt.Errorf("not a whole safetensors file: a header of %d bytes in a file of %d", length, a.data.size)
	}
	raw := make([]byte, length)
	if err := a.data.readFull(raw, 8); err != nil {
		return err
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(raw, &header); err != nil {
		return fmt.Errorf("not a safetensors file: %w", err)
	}
	delete(header, "__metadata__")
	type entry struct {
		Type    string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	entries := map[string]entry{}
	for key, raw := range header {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("array %q of a safetensors file: %w", key, err)
		}
		entries[key] = e
	}
	a.members = map[string]arrayOpener{}
	values := int64(length) + 8 // offset of the first value
	order := func(x, y string) int {
		return cmp.Or(cmp.Compare(entries[x].Offsets[0], entries[y].Offsets[0]), cmp.Compare(x, y))
	}
	for _, key := range slices.SortedFunc(maps.Keys(entries), order) {
		e := entries[key]
		a.add(key, func(context.Context) (npyArray, error) {
			t, known := safetensorsTypes[e.Type]
			if !known {
				return npyArray{}, fmt.Errorf("type %s is not supported: save float32", e.Type)
			}
			if slices.ContainsFunc(e.Shape, func(d int) bool { return d < 0 }) || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] || e.Offsets[1] > a.data.size-values {
				return npyArray{}, fmt.Errorf("shape %v at bytes %v is not in the file: is it truncated?", e.Shape, e.Offsets)
			}
			arr := npyArray{kind: t.kind, bytes: t.bytes, order: binary.LittleEndian, shape: e.Shape,
				fileData: fileData{io.NewSectionReader(a.data, values+e.Offsets[0], e.Offsets[1]-e.Offsets[0]), e.Offsets[1] - e.Offsets[0], nil}}
			return arr, arr.checkSize()
		})
	}
	return nil
}
