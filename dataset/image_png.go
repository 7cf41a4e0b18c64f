package dataset

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"iter"

	"github.com/klauspost/compress/zlib" // takes less time than that of the standard library

	"github.com/noether-ml/noether/internal/turbojpeg"
)

// stripPixels is the approximate number of pixels of a strip, some successive rows of a large PNG
// file that are decoded together.
const stripPixels = 1 << 19

const pngSignature = "\x89PNG\r\n\x1a\n"

// pngHeader is the number of bytes of data in the header chunk, IHDR.
const pngHeader = 13

// pngRows returns the rows of a PNG file from the top, in strips of about the given number of
// pixels and at least one row. Memory holds one strip at a time. ok is false for an interlaced
// image, whose rows are not in order.
func pngRows(file io.Reader, pixels int) (strips iter.Seq2[image.Image, error], ok bool, err error) {
	r := &pngReader{chunks: bufio.NewReaderSize(file, 1<<16)}
	if err := r.readHeader(); err != nil {
		return nil, false, err
	}
	if interlace := r.header[12]; interlace != 0 {
		return nil, false, nil
	}
	return func(yield func(image.Image, error) bool) {
		n := max(1, pixels/r.width)
		for at := 0; at < r.height; at += n {
			img, err := r.strip(min(n, r.height-at))
			if !yield(img, err) || err != nil {
				return
			}
		}
		if err := r.finish(); err != nil {
			yield(nil, err)
		}
	}, true, nil
}

// decodePNG decodes the commonest PNG files: not interlaced, grey, RGB or RGBA with 8 bits per
// channel. It takes half of the time of package png. ok is false for other files, and for damaged
// ones.
func decodePNG(data []byte) (img image.Image, ok bool) {
	r := &pngReader{chunks: bufio.NewReader(bytes.NewReader(data))}
	if err := r.readHeader(); err != nil || r.header[12] != 0 || !r.is8Bit() {
		return nil, false
	}
	img, err := r.strip(r.height)
	return img, err == nil && r.finish() == nil
}

// A pngReader reads the rows of a PNG file that is not interlaced.
type pngReader struct {
	chunks        *bufio.Reader
	header        [pngHeader]byte // data of IHDR; 8: bit depth, 9: colour type, 12: interlace
	width, height int
	// The chunks with the palette (PLTE) and the transparent colour (tRNS).
	tables     bytes.Buffer
	pixels     io.ReadCloser // decompressed: for each row, its filter and its bytes
	data       *pngData      // the compressed data that pixels are read from
	pixelBytes int           // bytes of a pixel; 1 if it has fewer than 8 bits
	row, above []byte        // the filter and the bytes of a row, and of the one before
	encoded    bytes.Buffer  // the PNG file of one strip
}

// readHeader reads the chunks before the pixels.
func (r *pngReader) readHeader() error {
	var signature [len(pngSignature)]byte
	if _, err := io.ReadFull(r.chunks, signature[:]); err != nil {
		return noEOF(err)
	}
	if string(signature[:]) != pngSignature {
		return errors.New("not a PNG file")
	}
	for {
		length, kind, err := readChunkHeader(r.chunks)
		if err != nil {
			return err
		}
		switch {
		case kind == "IDAT" && r.width > 0:
			return r.openPixels(length)
		case kind == "IHDR" && length == pngHeader:
			if err := readChunk(r.chunks, kind, r.header[:]); err != nil {
				return err
			}
			r.width, r.height = int(binary.BigEndian.Uint32(r.header[:])), int(binary.BigEndian.Uint32(r.header[4:]))
		case (kind == "PLTE" || kind == "tRNS") && length <= 3*256:
			data := make([]byte, length)
			if err := readChunk(r.chunks, kind, data); err != nil {
				return err
			}
			writeChunk(&r.tables, kind, data)
		case kind == "IHDR" || kind == "IDAT" || kind == "IEND":
			return fmt.Errorf("chunk %s in the wrong place", kind)
		default:
			if err := skipChunk(r.chunks, kind, length); err != nil {
				return err
			}
		}
	}
}

// openPixels starts reading the pixels, whose first IDAT chunk has the given length in bytes.
func (r *pngReader) openPixels(length uint32) error {
	if r.width <= 0 || r.height <= 0 || r.width > maxPixels {
		return fmt.Errorf("the header states %d x %d pixels", r.width, r.height)
	}
	depth, colour := int(r.header[8]), r.header[9]
	// Colour types: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha.
	channels := map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
	bits := depth * channels
	r.pixelBytes = max(1, bits/8)
	r.row = make([]byte, 1+(r.width*bits+7)/8)
	r.above = make([]byte, len(r.row))
	r.data = newPNGData(r.chunks, length)
	var err error
	r.pixels, err = zlib.NewReader(r.data)
	return noEOF(err)
}

// is8Bit reports whether the pixels are grey, RGB or RGBA with 8 bits per channel, and the file has
// neither a palette nor a transparent colour.
func (r *pngReader) is8Bit() bool {
	colour := r.header[9]
	return r.header[8] == 8 && (colour == 0 || colour == 2 || colour == 6) && r.tables.Len() == 0
}

// strip decodes the next n rows. If the pixels are not is8Bit, it writes a PNG file of these rows
// alone, without filters or compression, which package png decodes.
func (r *pngReader) strip(n int) (image.Image, error) {
	if r.is8Bit() {
		return r.strip8Bit(n)
	}
	r.encoded.Reset()
	r.encoded.WriteString(pngSignature)
	header := r.header
	binary.BigEndian.PutUint32(header[4:], uint32(n))
	writeChunk(&r.encoded, "IHDR", header[:])
	r.encoded.Write(r.tables.Bytes())
	start := r.encoded.Len()
	r.encoded.Write(make([]byte, 8)) // length and kind
	stored, err := zlib.NewWriterLevel(&r.encoded, zlib.NoCompression)
	if err != nil {
		return nil, err
	}
	for range n {
		row, err := r.nextRow()
		if err != nil {
			return nil, err
		}
		if _, err := stored.Write(row); err != nil {
			return nil, err
		}
	}
	if err := stored.Close(); err != nil {
		return nil, err
	}
	endChunk(&r.encoded, "IDAT", start)
	writeChunk(&r.encoded, "IEND", nil)
	return png.Decode(bytes.NewReader(r.encoded.Bytes()))
}

// strip8Bit decodes the next n rows, if the pixels are is8Bit.
func (r *pngReader) strip8Bit(n int) (image.Image, error) {
	bytes := r.width * r.pixelBytes
	pix := make([]uint8, n*bytes)
	for y := range n {
		row, err := r.nextRow()
		if err != nil {
			return nil, err
		}
		copy(pix[y*bytes:], row[1:])
	}
	switch bounds := image.Rect(0, 0, r.width, n); r.pixelBytes {
	case 1:
		return &image.Gray{Pix: pix, Stride: bytes, Rect: bounds}, nil
	case 3:
		return &turbojpeg.RGB{Pix: pix, Rect: bounds}, nil
	default:
		return &image.NRGBA{Pix: pix, Stride: bytes, Rect: bounds}, nil
	}
}

// nextRow returns the next row: a byte 0, which stands for no filter, and the bytes of its pixels.
// They are valid until the second call after this one.
func (r *pngReader) nextRow() ([]byte, error) {
	if _, err := io.ReadFull(r.pixels, r.row); err != nil {
		return nil, noEOF(err)
	}
	if err := undoFilter(r.row, r.above, r.pixelBytes); err != nil {
		return nil, err
	}
	r.row, r.above = r.above, r.row
	return r.above, nil
}

// finish checks what follows the last row, up to the end of the file.
func (r *pngReader) finish() error {
	var one [1]byte
	if n, err := io.ReadFull(r.pixels, one[:]); n > 0 || err != io.EOF {
		return errors.Join(errors.New("too many pixels"), noEOF(err))
	}
	if _, err := io.Copy(io.Discard, r.data); err != nil { // to the next chunk
		return err
	}
	for length, kind := r.data.length, r.data.kind; ; {
		if err := skipChunk(r.chunks, kind, length); err != nil || kind == "IEND" {
			return err
		}
		var err error
		if length, kind, err = readChunkHeader(r.chunks); err != nil {
			return err
		}
	}
}

// A pngData reads the data of successive IDAT chunks as one stream, and checks their checksums.
type pngData struct {
	chunks *bufio.Reader
	kind   string // of the present chunk, such as IDAT
	length uint32 // bytes of its data that are left
	sum    hash.Hash32
}

func newPNGData(chunks *bufio.Reader, length uint32) *pngData {
	d := &pngData{chunks: chunks, kind: "IDAT", length: length, sum: crc32.NewIEEE()}
	d.sum.Write([]byte(d.kind))
	return d
}

func (d *pngData) Read(p []byte) (int, error) {
	for d.kind == "IDAT" && d.length == 0 {
		if err := checkSum(d.chunks, d.sum); err != nil {
			return 0, err
		}
		var err error
		if d.length, d.kind, err = readChunkHeader(d.chunks); err != nil {
			return 0, err
		}
		d.sum.Reset()
		d.sum.Write([]byte(d.kind))
	}
	if d.kind != "IDAT" {
		return 0, io.EOF
	}
	n, err := d.chunks.Read(p[:min(len(p), int(d.length))])
	d.sum.Write(p[:n])
	d.length -= uint32(n)
	return n, noEOF(err)
}

// readChunkHeader reads the length and the kind of a chunk.
func readChunkHeader(r io.Reader) (length uint32, kind string, err error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, "", noEOF(err)
	}
	return binary.BigEndian.Uint32(b[:]), string(b[4:]), nil
}

// readChunk fills data with the data of a chunk and checks its checksum.
func readChunk(r io.Reader, kind string, data []byte) error {
	if _, err := io.ReadFull(r, data); err != nil {
		return noEOF(err)
	}
	sum := crc32.NewIEEE()
	sum.Write([]byte(kind))
	sum.Write(data)
	return checkSum(r, sum)
}

// skipChunk reads the data of a chunk and checks its checksum.
func skipChunk(r io.Reader, kind string, length uint32) error {
	sum := crc32.NewIEEE()
	sum.Write([]byte(kind))
	if _, err := io.CopyN(sum, r, int64(length)); err != nil {
		return noEOF(err)
	}
	return checkSum(r, sum)
}

// checkSum reads the four bytes after the data of a chunk, and compares them with its checksum.
func checkSum(r io.Reader, sum hash.Hash32) error {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return noEOF(err)
	}
	if binary.BigEndian.Uint32(b[:]) != sum.Sum32() {
		return errors.New("a checksum does not match")
	}
	return nil
}

// writeChunk appends a chunk.
func writeChunk(b *bytes.Buffer, kind string, data []byte) {
	start := b.Len()
	b.Write(make([]byte, 8))
	b.Write(data)
	endChunk(b, kind, start)
}

// endChunk completes the chunk at start: it fills in length and kind, 8 bytes, and appends the
// checksum.
func endChunk(b *bytes.Buffer, kind string, start int) {
	chunk := b.Bytes()[start:]
	binary.BigEndian.PutUint32(chunk, uint32(len(chunk)-8))
	copy(chunk[4:], kind)
	b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk[4:])))
}

// noEOF returns io.ErrUnexpectedEOF for io.EOF, where the file must not end, and other errors as
// they are.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
