package dataset

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSafetensorsTypes reads the numbers 1, 2 and 3 in each type.
func TestSafetensorsTypes(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]any{
		"F64": []float64{1, 2, 3}, "F32": []float32{1, 2, 3}, "F16": []uint16{0x3c00, 0x4000, 0x4200}, "BF16": []uint16{0x3f80, 0x4000, 0x4040},
		"I64": []int64{1, 2, 3}, "I16": []int16{1, 2, 3}, "U32": []uint32{1, 2, 3}, "U8": []uint8{1, 2, 3},
	} {
		raw, err := binary.Append(nil, binary.LittleEndian, values)
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf(`{"x":{"dtype":%q,"shape":[3],"data_offsets":[0,%d]}}`, name, len(raw))
		path := filepath.Join(t.TempDir(), "x.safetensors")
		if err := os.WriteFile(path, slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), raw), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := ReadArray(t.Context(), path, "")
		if err != nil || !slices.Equal(got.Data, []float32{1, 2, 3}) {
			t.Errorf("%s: %v, error %v; want 1, 2, 3", name, got.Data, err)
		}
	}
}
