package extract

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// chunkBytes is about the size of a chunk of a Zarr array.
const chunkBytes = 8 << 20

// A zarrArray is a Zarr array (version 3) of float32 in a folder, without compression. Its chunks
// are whole rows, the axis of samples, which are written in order.
type zarrArray struct {
	dir   string
	shape []int // of a row
	rows  int   // of a chunk
	chunk int   // that is open
	file  *os.File
}

func newZarrArray(dir string, shape []int, samples int) (*zarrArray, error) {
	rows := max(1, chunkBytes/max(1, 4*tensor.Size(shape)))
	return &zarrArray{dir, shape, max(1, min(rows, samples)), -1, nil}, os.MkdirAll(dir, 0o777)
}

// WriteAt writes whole rows at their place in the array, in bytes.
func (z *zarrArray) WriteAt(raw []byte, at int64) (int, error) {
	written := 0
	size := int64(4 * tensor.Size(z.shape) * z.rows) // of a chunk
	for len(raw) > 0 {
		if err := z.open(int(at / size)); err != nil {
			return written, err
		}
		n := min(int64(len(raw)), size-at%size)
		if _, err := z.file.WriteAt(raw[:n], at%size); err != nil {
			return written, err
		}
		raw, at, written = raw[n:], at+n, written+int(n)
	}
	return written, nil
}

// open completes the chunk that is open, and opens another one.
func (z *zarrArray) open(chunk int) error {
	if chunk == z.chunk {
		return nil
	}
	if err := z.Close(); err != nil {
		return err
	}
	path := filepath.Join(z.dir, "c", strconv.Itoa(chunk)+strings.Repeat(string(filepath.Separator)+"0", len(z.shape)))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	z.file, z.chunk = f, chunk
	return err
}

// Close fills the open chunk, since all chunks have the same size.
func (z *zarrArray) Close() error {
	if z.file == nil {
		return nil
	}
	err := errors.Join(z.file.Truncate(int64(4*tensor.Size(z.shape)*z.rows)), z.file.Close())
	z.file = nil
	return err
}

// finish closes the array and describes it. axes name its dimensions.
func (z *zarrArray) finish(rows int, axes tensor.Axes) error {
	named := func(name string, configuration map[string]any) map[string]any {
		return map[string]any{"name": name, "configuration": configuration}
	}
	array := map[string]any{
		"zarr_format": 3, "node_type": "array", "data_type": "float32", "fill_value": 0, "attributes": map[string]any{},
		"shape":              append([]int{rows}, z.shape...),
		"chunk_grid":         named("regular", map[string]any{"chunk_shape": append([]int{z.rows}, z.shape...)}),
		"chunk_key_encoding": named("default", map[string]any{"separator": "/"}),
		"codecs":             []any{named("bytes", map[string]any{"endian": "little"})},
	}
	if len(axes) == len(z.shape)+1 {
		array["dimension_names"] = strings.Split(string(axes), "")
	}
	return errors.Join(z.Close(), writeZarr(z.dir, array))
}

func writeZarr(dir string, node map[string]any) error {
	raw, err := json.MarshalIndent(node, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "zarr.json"), append(raw, '\n'), 0o666)
}

// writeGroups describes the folders from below top to above dir as groups of Zarr, with top.
func writeGroups(top, dir string) error {
	for dir = filepath.Dir(dir); ; dir = filepath.Dir(dir) {
		if err := writeZarr(dir, map[string]any{"zarr_format": 3, "node_type": "group", "attributes": map[string]any{}}); err != nil || dir == top {
			return err
		}
	}
}
