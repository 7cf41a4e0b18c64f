// Package parquetbounds opens Parquet files, and checks what their pages take in memory before they
// are read.
//
// A page of a few bytes may decompress to gigabytes, and a run-length encoding or a dictionary
// makes billions of values of a few bytes. The library that reads Parquet allocates what the
// headers of the pages state.
package parquetbounds

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// Open opens a file of the given size in bytes, without its page index if the options say so. Bloom
// filters are never read.
func Open(r io.ReaderAt, size int64, options ...parquet.FileOption) (*parquet.File, error) {
	var end [8]byte // length of the footer, magic number
	if size < int64(len(end)) {
		return nil, errors.New("not a whole Parquet file: too short")
	}
	if _, err := r.ReadAt(end[:], size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// The library allocates the stated size of the footer.
	if int64(binary.LittleEndian.Uint32(end[:])) > size-int64(len(end)) {
		return nil, errors.New("not a whole Parquet file: the footer is larger than the file")
	}
	f, err := parquet.OpenFile(r, size, append(options, parquet.SkipBloomFilters(true))...)
	if err != nil {
		return nil, fmt.Errorf("not a whole Parquet file: %w", err)
	}
	return f, nil
}

// MaxValues is the largest number of values of a page. The library holds four bytes for each.
const MaxValues = 1 << 26

// Bounds on rows, for tables in which no row is like all others: a file has at most plainRows rows,
// or rowsPerByte for each of its bytes.
const (
	plainRows   = 1 << 20
	rowsPerByte = 8
)

// CheckRows returns an error if a file of the given size in bytes states more rows than it can hold
// if they differ.
func CheckRows(f *parquet.File, size int64) error {
	rows := int64(0)
	for _, g := range f.Metadata().RowGroups {
		if rows += g.NumRows; g.NumRows < 0 || rows < 0 || rows > max(plainRows, rowsPerByte*size) {
			return fmt.Errorf("a Parquet file of %d bytes states %d rows or more: the limit is %d, or %d for each byte", size, rows, plainRows, rowsPerByte)
		}
	}
	return nil
}

// Check returns an error if a page of a column of f decompresses to more than maxBytes bytes, or
// has more than MaxValues values. columns are the indices of the columns; nil: all.
func Check(r io.ReaderAt, f *parquet.File, columns []int, maxBytes int64) error {
	for _, g := range f.Metadata().RowGroups {
		if columns == nil {
			for i := range g.Columns {
				columns = append(columns, i)
			}
		}
		for _, i := range columns {
			if i >= len(g.Columns) {
				return errors.New("the Parquet file is damaged: a row group lacks a column")
			}
			if err := checkChunk(r, &g.Columns[i].MetaData, maxBytes); err != nil {
				return fmt.Errorf("column %v: %w", g.Columns[i].MetaData.PathInSchema, err)
			}
		}
	}
	return nil
}

// checkChunk checks the pages of a column in a row group.
func checkChunk(r io.ReaderAt, c *format.ColumnMetaData, maxBytes int64) error {
	at := c.DataPageOffset
	if c.DictionaryPageOffset > 0 {
		at = min(at, c.DictionaryPageOffset)
	}
	end := at + c.TotalCompressedSize
	for values := int64(0); at < end && values < c.NumValues; {
		header, length, err := readHeader(r, at, end)
		if err != nil {
			return fmt.Errorf("the header of a page at byte %d is damaged: %w", at, err)
		}
		count := int64(header.DictionaryPageHeader.V.NumValues)
		if header.Type != format.DictionaryPage {
			count = int64(max(header.DataPageHeader.V.NumValues, header.DataPageHeaderV2.V.NumValues))
			values += count
		}
		switch {
		case header.CompressedPageSize < 0 || header.UncompressedPageSize < 0 || count < 0:
			return fmt.Errorf("the header of a page at byte %d is damaged", at)
		case int64(header.UncompressedPageSize) > maxBytes:
			return fmt.Errorf("a page at byte %d: %w", at, tooLarge(maxBytes))
		case count > MaxValues:
			return fmt.Errorf("a page has %d values: the limit is %d; write the file with smaller pages", count, MaxValues)
		}
		at += length
		if err := checkSize(r, at, header, c.Codec, maxBytes); err != nil {
			return fmt.Errorf("a page at byte %d: %w", at, err)
		}
		at += int64(header.CompressedPageSize)
	}
	return nil
}

// checkSize returns an error if a page at an offset decompresses to more than maxBytes, whatever
// its header states: the library takes what comes.
func checkSize(r io.ReaderAt, at int64, header *format.PageHeader, codec format.CompressionCodec, maxBytes int64) error {
	start, size := at, int64(header.CompressedPageSize)
	if header.Type == format.DataPageV2 {
		v2 := &header.DataPageHeaderV2.V
		levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength) // not compressed
		switch {
		case levels < 0 || levels > size:
			return errors.New("it is damaged")
		case v2.IsCompressed.Valid && !v2.IsCompressed.V:
			return nil
		}
		start, size = at+levels, size-levels
	}
	page := io.NewSectionReader(r, start, size)
	var from io.Reader
	var err error
	switch codec {
	case format.Snappy: // the size comes first
		if n, err := binary.ReadUvarint(bufio.NewReaderSize(page, 16)); err == nil && n > uint64(maxBytes) {
			return tooLarge(maxBytes)
		}
		return nil
	case format.Gzip:
		from, err = gzip.NewReader(page)
	case format.Brotli:
		from = brotli.NewReader(page)
	case format.Zstd:
		var d *zstd.Decoder
		if d, err = zstd.NewReader(page, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20)); err == nil {
			defer d.Close()
			from = d
		}
	case format.Lz4Raw: // the library doubles its memory until the size suffices, also for damaged data
		src := make([]byte, size)
		if _, err = io.ReadFull(page, src); err == nil {
			_, err = lz4.UncompressBlock(src, make([]byte, header.UncompressedPageSize))
		}
		if err != nil {
			return fmt.Errorf("it is damaged: %w", err)
		}
		return nil
	default:
		return nil
	}
	if err != nil {
		return nil // the library reports damaged data
	}
	if n, _ := io.Copy(io.Discard, io.LimitReader(from, maxBytes+1)); n > maxBytes {
		return tooLarge(maxBytes)
	}
	return nil
}

func tooLarge(maxBytes int64) error {
	return fmt.Errorf("it decompresses to more than %d bytes; write the file with smaller pages", maxBytes)
}

// readHeader reads the header of a page, which ends before end, and returns its length in bytes.
func readHeader(r io.ReaderAt, at, end int64) (header *format.PageHeader, length int64, err error) {
	const usual, most = 1 << 9, 1 << 24 // bytes: statistics in a header may hold long texts
	for n := int64(usual); ; n *= 8 {
		raw := make([]byte, min(n, end-at))
		got, err := r.ReadAt(raw, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		header = new(format.PageHeader)
		bytes := new(thrift.CompactProtocol).NewReaderFromBytes(raw[:got])
		if err = thrift.NewDecoder(bytes).Decode(header); err == nil {
			return header, int64(bytes.BytesRead()), nil
		}
		if int64(got) < n || n >= most {
			return nil, 0, err
		}
	}
}
