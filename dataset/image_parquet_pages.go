package dataset

import (
	"errors"
	"io"
	"slices"
	"sort"
	"unsafe"

	"github.com/parquet-go/parquet-go"
)

// A parquetGroup is a row group of one of the files of a Parquet.
type parquetGroup struct {
	file   string              // name of the file, for messages
	source int                 // index of the file
	row    int                 // number of its first row in the file, from 0
	first  int                 // index of the sample in its first row
	images parquet.ColumnChunk // the encoded images
}

// A parquetPage holds the images of consecutive samples, as they are encoded.
type parquetPage struct {
	first  int      // index of the first sample
	images [][]byte // an element is nil if its row has no image
	size   int      // in bytes
}

// Bounds of the cache of pages, which serves workers that read neighbouring rows.
const (
	cachedPages = 8
	cachedBytes = 256 << 20
)

// encoded returns the bytes of image i.
func (p *Parquet) encoded(i int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, page := range p.pages {
		if page.first <= i && i < page.first+len(page.images) {
			p.pages = slices.Insert(slices.Delete(p.pages, k, k+1), 0, page)
			return page.image(i)
		}
	}
	var page parquetPage
	err := guardParquet(func() (err error) {
		page, err = p.readPage(i)
		return err
	})
	if err != nil {
		p.closeReader()
		return nil, err
	}
	p.pages = slices.Insert(p.pages, 0, page)
	size := 0
	for k := range p.pages {
		if size += p.pages[k].size; k > 0 && (k >= cachedPages || size > cachedBytes) {
			p.pages = slices.Delete(p.pages, k, len(p.pages))
			break
		}
	}
	return page.image(i)
}

// image returns the encoded image of sample i.
func (page parquetPage) image(i int) ([]byte, error) {
	if data := page.images[i-page.first]; data != nil {
		return data, nil
	}
	return nil, errors.New("the row has no image")
}

// locate returns the index of the row group of sample i.
func (p *Parquet) locate(i int) int {
	return sort.Search(len(p.groups), func(k int) bool { return p.groups[k].first > i }) - 1
}

// readPage reads the page from sample i on. It seeks, unless i is the sample after the last page
// that was read.
func (p *Parquet) readPage(i int) (parquetPage, error) {
	if p.reader == nil || p.next != i || i >= p.end {
		p.closeReader()
		k := p.locate(i)
		p.reader = p.groups[k].images.Pages()
		p.end = len(p.labels)
		if k+1 < len(p.groups) {
			p.end = p.groups[k+1].first
		}
		if err := p.reader.SeekToRow(int64(i - p.groups[k].first)); err != nil {
			return parquetPage{}, err
		}
	}
	page, err := p.reader.ReadPage()
	if errors.Is(err, io.EOF) {
		err = errors.New("the file is damaged: a row group ends too early")
	}
	if err != nil {
		return parquetPage{}, err
	}
	defer parquet.Release(page)
	out := parquetPage{first: i}
	copies := map[*byte][]byte{} // by the first byte: rows may share an image of a dictionary
	err = pageValues(page, func(v parquet.Value) error {
		var data []byte
		if !v.IsNull() {
			raw := v.ByteArray()
			if data = copies[unsafe.SliceData(raw)]; len(data) != len(raw) || data == nil {
				data = append([]byte{}, raw...)
				copies[unsafe.SliceData(raw)] = data
				out.size += len(raw)
			}
		}
		out.images = append(out.images, data)
		return nil
	})
	if err == nil && len(out.images) == 0 {
		err = errors.New("the file is damaged: a page has no rows")
	}
	p.next = i + len(out.images)
	return out, err
}

func (p *Parquet) closeReader() {
	if p.reader != nil {
		p.reader.Close()
		p.reader = nil
	}
}
