package dataset

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An archive is an open file of arrays: an npz, safetensors or Parquet file, which holds arrays by
// key, or an npy file, which holds one array without a key. It may also be a folder of Zarr.
type archive struct {
	path    string
	data    fileData               // random access to the bytes of the file
	members map[string]arrayOpener // nil: an npy file
	keys    []string               // in the order of the file
}

// An arrayOpener opens an array of an archive.
type arrayOpener func(context.Context) (npyArray, error)

func (a *archive) add(key string, open arrayOpener) {
	if a.members == nil {
		a.members = map[string]arrayOpener{}
	}
	a.members[key] = open
	a.keys = append(a.keys, key)
}

func openArchive(ctx context.Context, path string) (archive, error) {
	b, err := openData(ctx, path)
	if err != nil {
		return archive{}, err
	}
	a := archive{path: path, data: b}
	if err := a.readDirectory(); err != nil {
		b.Close()
		return archive{}, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// readDirectory lists the arrays of a file, whose first bytes tell its format.
func (a *archive) readDirectory() error {
	var magic [9]byte
	if _, err := a.data.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case string(magic[:2]) == "PK":
		return a.readZip()
	case string(magic[:4]) == "PAR1":
		return a.readParquet()
	case magic[8] == '{' && string(magic[:6]) != "\x93NUMPY":
		return a.readSafetensors(binary.LittleEndian.Uint64(magic[:8]))
	}
	return nil
}

// readZip lists the arrays of an npz file, which is a zip archive.
func (a *archive) readZip() error {
	z, err := zip.NewReader(a.data, a.data.size)
	if err != nil {
		return fmt.Errorf("not an npz archive: %w", err)
	}
	a.members = map[string]arrayOpener{}
	for _, f := range z.File {
		if key, ok := strings.CutSuffix(f.Name, ".npy"); ok {
			a.add(key, func(ctx context.Context) (npyArray, error) {
				b, err := openMember(ctx, a.data, f)
				if err != nil {
					return npyArray{}, err
				}
				return openNPY(b)
			})
		}
	}
	return nil
}

func (a archive) Close() error { return a.data.Close() }

// open opens the array of a key. An npy file has the key "". An uncompressed array (numpy.savez) is
// read once to verify its checksum, and then from the file; a compressed one is decompressed into
// memory. Close the archive after the last read.
func (a archive) open(ctx context.Context, key string) (npyArray, error) {
	where, open := a.path, a.members[key]
	switch {
	case a.members == nil && key != "":
		return npyArray{}, fmt.Errorf("%s contains one array without a key, not %q", a.path, key)
	case a.members == nil:
		open = func(context.Context) (npyArray, error) { return openNPY(a.data) }
	case open == nil && len(a.keys) == 0:
		return npyArray{}, fmt.Errorf("%s contains one array without a key, not %q", a.path, key)
	case open == nil && key == "":
		return npyArray{}, fmt.Errorf("%s contains the arrays %s: set the key", a.path, firstNames(a.keys, 20))
	case open == nil:
		return npyArray{}, fmt.Errorf("%s: unknown array %q: use one of %s", a.path, key, firstNames(a.keys, 20))
	case key != "":
		where = fmt.Sprintf("%s: array %q", a.path, key)
	}
	arr, err := open(ctx)
	if err != nil {
		return arr, fmt.Errorf("%s: %w", where, err)
	}
	return arr, nil
}

// openMember returns the bytes of a member of the zip archive b, whose checksum it verifies.
func openMember(ctx context.Context, b fileData, f *zip.File) (fileData, error) {
	limit := decompressedLimit()
	if f.Method != zip.Store && f.UncompressedSize64 > uint64(limit) {
		return fileData{}, tooLarge(limit)
	}
	r, err := f.Open()
	if err != nil {
		return fileData{}, err
	}
	defer r.Close()
	var member fileData
	if f.Method == zip.Store {
		member, err = storedMember(b, f)
		if err == nil {
			_, err = io.Copy(io.Discard, contextReader{ctx, r})
		}
	} else {
		member, err = decompress(contextReader{ctx, r}, limit)
	}
	if errors.Is(err, zip.ErrChecksum) {
		err = errors.New("its bytes differ from the checksum in the archive: the file is damaged")
	}
	return member, err
}

// storedMember returns the bytes of a member that is not compressed.
func storedMember(b fileData, f *zip.File) (fileData, error) {
	at, err := f.DataOffset()
	if err != nil {
		return fileData{}, err
	}
	size := int64(f.UncompressedSize64)
	if size < 0 || size > b.size || at > b.size-size || f.CompressedSize64 != f.UncompressedSize64 {
		return fileData{}, fmt.Errorf("the archive is truncated")
	}
	return fileData{io.NewSectionReader(b, at, size), size, b.file}, nil
}

// imagesKey returns the key of the images if none is set: that of the only array, or the first
// usual name that the file has.
func (a archive) imagesKey() (string, error) {
	if a.members == nil {
		return "", nil
	}
	if len(a.keys) == 1 {
		return a.keys[0], nil
	}
	for _, usual := range []string{"images", "x", "data", "test_images", "x_test"} {
		if slices.Contains(a.keys, usual) {
			return usual, nil
		}
	}
	return "", fmt.Errorf("%s: the array of images is ambiguous: set the key to one of %s", a.path, firstNames(a.keys, 20))
}

// labelsKey returns the key of the labels of the images with key images: y_test for x_test, labels
// for images. It returns "" if the file has no such key.
func (a archive) labelsKey(images string) string {
	words := strings.Split(images, "_")
	for i, w := range words {
		switch w {
		case "images", "data":
			words[i] = "labels"
		case "x":
			words[i] = "y"
		}
	}
	if key := strings.Join(words, "_"); key != images && slices.Contains(a.keys, key) {
		return key
	}
	return ""
}
