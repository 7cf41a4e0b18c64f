package dataset

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/x448/float16"

	"github.com/noether-ml/noether/tensor"
)

// zarrFile is the name of the file that describes a node of Zarr, version 3: an array or a group in
// a folder.
const zarrFile = "zarr.json"

// A zarrNode is the description of a node: https://zarr-specs.readthedocs.io.
type zarrNode struct {
	Format      int             `json:"zarr_format"`
	Type        string          `json:"node_type"`
	Shape       []int           `json:"shape"`
	DataType    json.RawMessage `json:"data_type"`
	Grid        zarrNamed       `json:"chunk_grid"`
	KeyEncoding zarrNamed       `json:"chunk_key_encoding"`
	Fill        json.RawMessage `json:"fill_value"`
	Codecs      []zarrNamed     `json:"codecs"`

	Transformers []json.RawMessage `json:"storage_transformers"`
}

// A zarrNamed is a codec, a grid or an encoding with its configuration. Its JSON may be the name.
type zarrNamed struct {
	Name   string
	Config struct {
		ChunkShape []int  `json:"chunk_shape"`
		Separator  string `json:"separator"`
		Endian     string `json:"endian"`
	}
}

func (z *zarrNamed) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &z.Name) == nil {
		return nil
	}
	var named struct {
		Name   string          `json:"name"`
		Config json.RawMessage `json:"configuration"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return err
	}
	z.Name = named.Name
	switch named.Name { // others have keys of other types, and are refused by name
	case "regular", "default", "v2", "bytes":
		if len(named.Config) > 0 {
			return json.Unmarshal(named.Config, &z.Config)
		}
	}
	return nil
}

// IsZarrArray reports whether a folder is an array of Zarr, or one that cannot be read.
func IsZarrArray(path string) bool {
	node, err := readZarrNode(path)
	return node.Type == "array" || err != nil && !errors.Is(err, fs.ErrNotExist)
}

var errZarr2 = errors.New("is an array of Zarr, version 2: save it with zarr_format=3")

// readZarrNode reads the description of a node. The error is fs.ErrNotExist if a folder is none.
func readZarrNode(path string) (zarrNode, error) {
	var node zarrNode
	f, size, err := openSized(filepath.Join(path, zarrFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, old := os.Stat(filepath.Join(path, ".zarray")); old == nil {
			return node, errZarr2
		}
	}
	if err != nil {
		return node, err
	}
	defer f.Close()
	if size > maxSafetensorsHeader {
		return node, fmt.Errorf("%s has %d bytes", zarrFile, size)
	}
	raw, err := io.ReadAll(f)
	if err == nil {
		err = json.Unmarshal(raw, &node)
	}
	switch {
	case err != nil:
		return node, fmt.Errorf("%s: %w", zarrFile, err)
	case node.Format != 3:
		return node, fmt.Errorf("%s has zarr_format %d: save it with zarr_format=3", zarrFile, node.Format)
	case node.Type != "array" && node.Type != "group":
		return node, fmt.Errorf("%s has the node_type %q: it must be array or group", zarrFile, node.Type)
	}
	return node, nil
}

// openZarr lists the arrays of a folder: one without a key, or those below a group, whose keys are
// their paths. ok is false if the folder is no node of Zarr.
func openZarr(path string) (a archive, ok bool, err error) {
	a = archive{path: path, members: map[string]arrayOpener{}}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return a, false, nil // openData says what it is
	}
	node, err := readZarrNode(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, false, nil
	case err != nil:
		return a, true, fmt.Errorf("%s: %w", path, err)
	case node.Type == "array":
		a.members[""] = func(context.Context) (npyArray, error) { return node.open(path) }
		return a, true, nil
	}
	err = filepath.WalkDir(path, func(below string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || below == path || !IsZarrArray(below) {
			return err
		}
		key, err := filepath.Rel(path, below)
		if err != nil {
			return err
		}
		a.add(filepath.ToSlash(key), func(context.Context) (npyArray, error) {
			node, err := readZarrNode(below)
			if err != nil {
				return npyArray{}, err
			}
			return node.open(below)
		})
		return fs.SkipDir
	})
	if err == nil && len(a.keys) == 0 {
		err = fmt.Errorf("%s is a group of Zarr without arrays", path)
	}
	return a, true, err
}

// zarrTypes has NumPy's letter and the number of bytes of the data types of Zarr.
var zarrTypes = map[string]struct {
	kind  byte
	bytes int
}{
	"float64": {'f', 8}, "float32": {'f', 4}, "float16": {'f', 2}, "bfloat16": {'B', 2}, "bool": {'b', 1},
	"int64": {'i', 8}, "int32": {'i', 4}, "int16": {'i', 2}, "int8": {'i', 1}, "uint64": {'u', 8}, "uint32": {'u', 4}, "uint16": {'u', 2}, "uint8": {'u', 1},
}

// open returns the array in a folder. It reads no chunk.
func (z *zarrNode) open(path string) (npyArray, error) {
	var typ string
	_ = json.Unmarshal(z.DataType, &typ) // others are objects
	known, ok := zarrTypes[typ]
	if !ok {
		return npyArray{}, fmt.Errorf("the data type %s is not supported: save float32", z.DataType)
	}
	a := npyArray{kind: known.kind, bytes: known.bytes, order: binary.LittleEndian, shape: z.Shape}
	r := &zarrReader{dir: path, shape: z.Shape, chunk: z.Grid.Config.ChunkShape, bytes: known.bytes}
	a.fileData = fileData{ReaderAt: r, size: math.MaxInt64}
	switch {
	case len(z.Transformers) > 0:
		return a, errors.New("storage transformers are not supported")
	case len(z.Shape) == 0:
		return a, errors.New("it is a scalar, not an array")
	case slices.ContainsFunc(z.Shape, func(d int) bool { return d < 0 }):
		return a, fmt.Errorf("the shape %v has a negative size", z.Shape)
	case z.Grid.Name != "regular":
		return a, fmt.Errorf("the chunk grid %q is not supported: save chunks of one shape", z.Grid.Name)
	case len(r.chunk) != len(z.Shape) || slices.ContainsFunc(r.chunk, func(d int) bool { return d < 1 }):
		return a, fmt.Errorf("chunks of the shape %v do not divide an array of %v", r.chunk, z.Shape)
	}
	if err := a.checkSize(); err != nil {
		return a, err
	}
	a.size = int64(tensor.Size(a.shape)) * int64(a.bytes)
	r.size = a.size
	if err := r.readCodecs(z.Codecs, &a); err != nil {
		return a, err
	}
	if err := r.readKeys(z.KeyEncoding); err != nil {
		return a, err
	}
	if err := r.readFill(z.Fill, a); err != nil {
		return a, err
	}
	if err := r.measure(); err != nil {
		return a, err
	}
	return a, r.checkChunks()
}

// A zarrReader provides random access to the values of an array in row-major order. The chunks, of
// equal shapes, are files. A chunk without a file has the fill value everywhere.
type zarrReader struct {
	dir          string
	shape, chunk []int
	bytes        int   // of a value
	size         int64 // of the array, in bytes

	prefix, separator string   // of the names of chunks
	codecs            []string // of the bytes of a chunk, in the order of writing
	fill              []byte   // a value

	chunkBytes int
	outer      int // axis: a chunk has all positions of the axes after it
	inner      int // values at one position of the axes up to outer

	mutex  sync.Mutex
	recent *lru.Cache[string, []byte] // decoded chunks, by name
}

// recentBytes is about the size of the decoded chunks that are kept.
const recentBytes = 128 << 20

func (r *zarrReader) readCodecs(codecs []zarrNamed, a *npyArray) error {
	found := false
	for i, c := range codecs {
		switch {
		case c.Name == "bytes" && i == 0:
			found = true
			switch {
			case c.Config.Endian == "big":
				a.order = binary.BigEndian
			case c.Config.Endian != "little" && (c.Config.Endian != "" || r.bytes > 1):
				return fmt.Errorf("the endian of the codec bytes is %q", c.Config.Endian)
			}
		case (c.Name == "gzip" || c.Name == "zstd" || c.Name == "crc32c") && found:
			r.codecs = append(r.codecs, c.Name)
		default:
			return fmt.Errorf("the codec %q is not supported: save with bytes, then zstd, gzip or crc32c, or without compression", c.Name)
		}
	}
	if !found {
		return errors.New("it has no codec bytes")
	}
	return nil
}

func (r *zarrReader) readKeys(encoding zarrNamed) error {
	switch encoding.Name {
	case "default":
		r.separator = cmp.Or(encoding.Config.Separator, "/")
		r.prefix = "c" + r.separator
	case "v2":
		r.separator = cmp.Or(encoding.Config.Separator, ".")
	default:
		return fmt.Errorf("the chunk key encoding %q is not supported", encoding.Name)
	}
	if r.separator != "/" && r.separator != "." {
		return fmt.Errorf("the separator of chunk keys is %q", r.separator)
	}
	return nil
}

// readFill sets the bytes of the fill value: a number, a boolean, or a text such as NaN or the bits
// in hexadecimal digits.
func (r *zarrReader) readFill(raw json.RawMessage, a npyArray) error {
	var bits uint64
	var text string
	var truth bool
	var number json.Number
	bad := fmt.Errorf("the fill value is %.40s", raw)
	switch {
	case json.Unmarshal(raw, &truth) == nil && a.kind == 'b' && string(raw) != "null":
		if truth {
			bits = 1
		}
	case a.float() && json.Unmarshal(raw, &text) == nil && string(raw) != "null":
		if digits, hex := strings.CutPrefix(text, "0x"); hex {
			v, err := strconv.ParseUint(digits, 16, 8*r.bytes)
			if err != nil {
				return bad
			}
			bits = v
			break
		}
		special, ok := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[text]
		if !ok {
			return bad
		}
		bits = bitsOf(special, a)
	case json.Unmarshal(raw, &number) == nil && string(raw) != "null" && a.kind != 'b':
		var err error
		switch a.kind {
		case 'u':
			bits, err = strconv.ParseUint(number.String(), 10, 8*r.bytes)
		case 'i':
			var v int64
			v, err = strconv.ParseInt(number.String(), 10, 8*r.bytes)
			bits = uint64(v)
		default:
			var v float64
			v, err = number.Float64()
			bits = bitsOf(v, a)
		}
		if err != nil {
			return bad
		}
	default:
		return bad
	}
	for i := range r.bytes {
		r.fill = append(r.fill, byte(bits>>(8*i)))
	}
	if a.order == binary.ByteOrder(binary.BigEndian) {
		slices.Reverse(r.fill)
	}
	return nil
}

// bitsOf returns the bits of a number of the floating-point type of an array.
func bitsOf(v float64, a npyArray) uint64 {
	switch {
	case a.kind == 'B':
		return uint64(math.Float32bits(float32(v)) >> 16)
	case a.bytes == 2:
		return uint64(float16.Fromfloat32(float32(v)).Bits())
	case a.bytes == 4:
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// measure sets sizes of chunks, of which one must fit into memory unless it is read in parts.
func (r *zarrReader) measure() error {
	r.outer, r.inner = len(r.shape)-1, 1
	for ; r.outer > 0 && r.chunk[r.outer] == r.shape[r.outer]; r.outer-- {
		r.inner *= r.shape[r.outer]
	}
	n := int64(r.bytes)
	for _, d := range r.chunk {
		if n > math.MaxInt64/int64(d) {
			return fmt.Errorf("chunks of the shape %v are too large", r.chunk)
		}
		n *= int64(d)
	}
	if limit := decompressedLimit(); len(r.codecs) > 0 && n > limit {
		return tooLarge(limit)
	}
	r.chunkBytes = int(n)
	var err error
	r.recent, err = lru.New[string, []byte](max(1, recentBytes/r.chunkBytes))
	return err
}

// checkChunks returns an error if no chunk has a file: the folder was copied without them.
func (r *zarrReader) checkChunks() error {
	found := errors.New("found")
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) != zarrFile {
			return found
		}
		return err
	})
	switch {
	case err == nil:
		return errors.New("the array has no chunks")
	case errors.Is(err, found):
		return nil
	}
	return err
}

// ReadAt is that of io.ReaderAt.
func (r *zarrReader) ReadAt(p []byte, at int64) (n int, err error) {
	index := make([]int, len(r.shape)) // of a value along each axis
	for n < len(p) {
		if at >= r.size {
			return n, io.EOF
		}
		value, within := int(at)/r.bytes, int(at)%r.bytes
		rest := value
		for i := len(index) - 1; i >= 0; i-- {
			index[i], rest = rest%r.shape[i], rest/r.shape[i]
		}
		var name strings.Builder
		offset := 0 // of the value in the chunk
		for i, at := range index {
			if i > 0 {
				name.WriteString(r.separator)
			}
			name.WriteString(strconv.Itoa(at / r.chunk[i]))
			offset = offset*r.chunk[i] + at%r.chunk[i]
		}
		// Values that follow in the array and in the chunk.
		positions := min(r.chunk[r.outer]-index[r.outer]%r.chunk[r.outer], r.shape[r.outer]-index[r.outer])
		run := min(len(p)-n, (positions*r.inner-value%r.inner)*r.bytes-within)
		if err := r.readChunk(r.prefix+name.String(), p[n:n+run], offset*r.bytes+within); err != nil {
			return n, err
		}
		n, at = n+run, at+int64(run)
	}
	return n, nil
}

// readChunk fills dst with the bytes of a chunk from an offset on.
func (r *zarrReader) readChunk(name string, dst []byte, at int) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	raw, ok := r.recent.Get(name)
	if !ok {
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		f, size, err := openSized(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			for i := range dst {
				dst[i] = r.fill[(at+i)%r.bytes]
			}
			return nil
		case err != nil:
			return err
		}
		defer f.Close()
		if len(r.codecs) == 0 {
			if size != int64(r.chunkBytes) {
				return fmt.Errorf("%s has %d bytes, want %d: is it truncated?", path, size, r.chunkBytes)
			}
			return fileData{ReaderAt: f, size: size}.readFull(dst, int64(at))
		}
		if raw, err = r.decode(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.recent.Add(name, raw)
	}
	copy(dst, raw[at:])
	return nil
}

// decode returns the bytes of a compressed chunk.
func (r *zarrReader) decode(from io.Reader) ([]byte, error) {
	for i := len(r.codecs) - 1; i >= 0; i-- {
		switch r.codecs[i] {
		case "gzip":
			z, err := gzip.NewReader(from)
			if err != nil {
				return nil, err
			}
			from = z
		case "zstd":
			z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1))
			if err != nil {
				return nil, err
			}
			defer z.Close()
			from = z
		case "crc32c":
			raw, err := io.ReadAll(io.LimitReader(from, 2*int64(r.chunkBytes)+1<<16))
			if err != nil {
				return nil, err
			}
			end := len(raw) - 4
			if end < 0 || binary.LittleEndian.Uint32(raw[end:]) != crc32.Checksum(raw[:end], crc32.MakeTable(crc32.Castagnoli)) {
				return nil, errors.New("its bytes differ from the checksum: it is damaged")
			}
			from = bytes.NewReader(raw[:end])
		}
	}
	raw, err := io.ReadAll(io.LimitReader(from, int64(r.chunkBytes)+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the compressed data end too early: is it truncated?")
	case err != nil:
		return nil, err
	case len(raw) != r.chunkBytes:
		return nil, fmt.Errorf("it has %d bytes or more, want %d", len(raw), r.chunkBytes)
	}
	return raw, nil
}
