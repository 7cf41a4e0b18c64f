package fetch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// IsArchive tells by its name whether a file is an archive that Tree unpacks.
func IsArchive(name string) bool {
	before, _, _ := strings.Cut(name, "#")
	if u, _, ok := strings.Cut(before, "?"); ok && IsURL(before) {
		before = u
	}
	for _, end := range []string{".tar", ".tar.gz", ".tgz", ".zip"} {
		if strings.HasSuffix(strings.ToLower(before), end) {
			return true
		}
	}
	return false
}

// Tree is the path of a folder with what an archive holds: a tar, tar.gz, tgz or zip at a URL. Where the archive holds
// a single folder, that folder is meant.
//
// An archive is not trusted. Files and folders alone are unpacked; names that lead elsewhere, links and devices are errors, and so
// are more files or bytes than the bounds, whatever the archive says of their size.
func (c *Cache) Tree(ctx context.Context, address, sum string) (string, error) {
	t, err := parse(address, sum)
	if err != nil {
		return "", err
	}
	if !IsArchive(t.name) {
		return "", fmt.Errorf("%s is no archive: known are tar, tar.gz, tgz and zip", t.text)
	}
	if sum, err = c.content(ctx, t); err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	dir, err := c.unpacked(ctx, sum, c.path("content", sum, "data"), t.name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	return dir, nil
}

// Local is the path of a file of this machine that has been checked against a SHA-256, which may be ""; of an archive, the
// folder with what it holds.
func (c *Cache) Local(ctx context.Context, file, sum string) (string, error) {
	is, err := hashOf(file)
	switch {
	case err != nil:
		return "", err
	case sum != "" && !strings.EqualFold(sum, is):
		return "", fmt.Errorf("%s %w", file, otherHash(is, sum))
	case !IsArchive(file):
		return file, nil
	}
	if err := c.prepare(); err != nil {
		return "", err
	}
	if err := c.enter(is); err != nil {
		return "", err
	}
	dir, err := c.unpacked(ctx, is, file, filepath.Base(file))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return dir, nil
}

// unpacked unpacks a content, unless that has been done.
func (c *Cache) unpacked(ctx context.Context, sum, archive, name string) (string, error) {
	tree := c.path("content", sum, "tree")
	if _, err := os.Stat(tree); err != nil {
		unlock := lockFor(ctx, c.path("urls", sum+".lock"))
		defer unlock()
		if _, err := os.Stat(tree); err != nil {
			if err := c.unpackTo(ctx, tree, archive, name); err != nil {
				return "", err
			}
			c.evict()
		}
	}
	entries, err := os.ReadDir(tree)
	if err != nil {
		return "", err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(tree, entries[0].Name()), nil
	}
	return tree, nil
}

// unpackTo unpacks beside the place and moves it there when it is whole.
func (c *Cache) unpackTo(ctx context.Context, tree, archive, name string) error {
	temp, err := os.MkdirTemp(filepath.Dir(tree), ".unpacking-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := Unpack(ctx, archive, name, temp, c.maxFile(), c.maxFiles()); err != nil {
		return err
	}
	if err := os.Rename(temp, tree); err != nil {
		if _, there := os.Stat(tree); there != nil {
			return err
		} // another process was faster, where there are no locks
	}
	return nil
}

// Unpack unpacks an archive, whose kind its name tells, into a folder. It writes at most so many bytes and files.
func Unpack(ctx context.Context, archive, name, dir string, maxBytes int64, maxFiles int) error {
	root, err := os.OpenRoot(dir) // which no path leaves, whatever it looks like and whatever links there are
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{ctx: ctx, root: root, bytes: maxBytes, files: maxFiles, maxBytes: maxBytes, maxFiles: maxFiles}
	if strings.HasSuffix(strings.ToLower(name), ".zip") {
		return u.zip(archive)
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	return u.tar(bufio.NewReaderSize(f, 1<<20))
}

// An unpacker writes what an archive holds; bytes and files are what it may still write.
type unpacker struct {
	ctx             context.Context
	root            *os.Root
	bytes, maxBytes int64
	files, maxFiles int
}

func (u *unpacker) tar(in *bufio.Reader) error {
	var from io.Reader = in
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
		from = z
	}
	r := tar.NewReader(from)
	found := false
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if !found {
				return errors.New("the archive is empty, or no tar")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
		found = true
		switch h.Typeflag {
		case tar.TypeReg:
			err = u.file(h.Name, r)
		case tar.TypeDir:
			err = u.folder(h.Name)
		case tar.TypeXGlobalHeader:
		default:
			err = fmt.Errorf("the archive holds %q, which is a link or a device", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r, err := zip.NewReader(f, info.Size())
	if err != nil {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	if len(r.File) == 0 {
		return errors.New("the archive is empty")
	}
	for _, one := range r.File {
		switch mode := one.Mode(); {
		case strings.HasSuffix(one.Name, "/") || mode.IsDir():
			err = u.folder(one.Name)
		case !mode.IsRegular():
			err = fmt.Errorf("the archive holds %q, which is a link or a device", one.Name)
		default:
			err = u.member(one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) member(one *zip.File) error {
	in, err := one.Open()
	if err != nil {
		return fmt.Errorf("the archive is damaged: %q: %w", one.Name, err)
	}
	defer in.Close()
	return u.file(one.Name, in)
}

// clean checks a name and brings it to the form of the file system.
func (u *unpacker) clean(name string) (string, error) {
	if err := u.ctx.Err(); err != nil {
		return "", context.Cause(u.ctx)
	}
	if u.files--; u.files < 0 {
		return "", fmt.Errorf("the archive holds more than %d files", u.maxFiles)
	}
	local := path.Clean(strings.TrimSuffix(name, "/"))
	if strings.ContainsAny(name, "\\\x00") || strings.HasPrefix(name, "/") || !filepath.IsLocal(filepath.FromSlash(local)) {
		return "", fmt.Errorf("the archive holds %q, a path that leaves its folder", name)
	}
	return filepath.FromSlash(local), nil
}

func (u *unpacker) folder(name string) error {
	local, err := u.clean(name)
	if err != nil || local == "." {
		return err
	}
	return u.root.MkdirAll(local, 0o777)
}

func (u *unpacker) file(name string, from io.Reader) error {
	local, err := u.clean(name)
	if err != nil {
		return err
	}
	if err := u.root.MkdirAll(filepath.Dir(local), 0o777); err != nil {
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	f, err := u.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	n, err := io.Copy(f, io.LimitReader(from, u.bytes+1))
	if closing := f.Close(); err == nil {
		err = closing
	}
	u.bytes -= n
	switch {
	case u.bytes < 0:
		return fmt.Errorf("the archive holds more than %d bytes", u.maxBytes)
	case err != nil:
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	return nil
}
