package fetch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/fetch/uri"
	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/tempfolder"
)

// IsArchive reports whether a file name, path or URL has the extension of an archive that Tree
// unpacks.
func IsArchive(name string) bool {
	before, _, _ := strings.Cut(name, "#") // a URL may end in #sha256=HEX
	if u, _, ok := strings.Cut(before, "?"); ok && uri.IsURL(before) {
		before = u
	}
	ends := []string{".tar", ".tar.gz", ".tgz", ".zip"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(strings.ToLower(before), end) })
}

// Tree returns the path of a folder with the files of an archive: a tar, tar.gz, tgz or zip at a
// URL. The archive is downloaded and unpacked unless the cache has it. If the archive has a single
// top folder, Tree returns the path of that folder. sum is the archive's expected SHA-256, or "",
// as for File.
//
// An archive is not trusted. Only files and folders are unpacked. Links, devices and names that
// lead outside the folder are errors, as are more files or bytes than the cache's bounds, MaxFiles
// and MaxFile.
func (c *Cache) Tree(ctx context.Context, address, sum string) (string, error) {
	t, err := parse(address, sum)
	if err != nil {
		return "", err
	}
	if !IsArchive(t.name) {
		return "", fmt.Errorf("%s is not an archive of a known kind: tar, tar.gz, tgz or zip", t.text)
	}
	t.tree = true
	if sum, err = c.content(ctx, t); err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	dir, err := c.unpackedFolder(ctx, sum, c.path("content", sum, "data"), t.name, func() error { return nil })
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.text, err)
	}
	return dir, nil
}

// Local checks a file of this machine against a SHA-256, which may be "", and returns its path. An
// archive is unpacked into the cache, and Local returns the folder with its files, as Tree does.
func (c *Cache) Local(ctx context.Context, file, sum string) (string, error) {
	state, err := filestate.Of(file)
	if err != nil {
		return "", err
	}
	actual, err := FileHash(file)
	switch {
	case err != nil:
		return "", err
	case sum != "" && !strings.EqualFold(sum, actual):
		return "", fmt.Errorf("%s %w", file, otherHash(actual, sum))
	case !IsArchive(file):
		return file, nil
	}
	if err := c.prepare(); err != nil {
		return "", err
	}
	if err := c.enter(actual); err != nil { // makes the archive's folder in the cache and locks it
		return "", err
	}
	dir, err := c.unpackedFolder(ctx, actual, file, filepath.Base(file), func() error { return state.Check(file) })
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return dir, nil
}

// unpackedFolder returns the folder with the files of an archive. sum is the SHA-256 of the
// archive, and the extension of name tells its kind. The archive is unpacked at the first use, and
// again if the files in the folder are not those of the archive. unchanged returns an error if the
// archive is no longer the one of which sum is the hash.
func (c *Cache) unpackedFolder(ctx context.Context, sum, archive, name string, unchanged func() error) (string, error) {
	tree := c.path("content", sum, "tree")
	if !c.treeIsIntact(ctx, sum) {
		unlock := lockFor(ctx, c.path("urls", sum+".lock"))
		defer unlock()
		if !c.treeIsIntact(ctx, sum) { // another process may have unpacked it meanwhile
			if err := c.unpackTo(ctx, sum, archive, name, unchanged); err != nil {
				return "", err
			}
			c.evict()
		}
	}
	entries, err := os.ReadDir(tree)
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return filesys.IsHidden(e.Name()) })
	if len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(tree, entries[0].Name()), nil
	}
	return tree, nil
}

// maxTree returns the largest size in bytes of the files of an archive: MaxFile, unless the cache or
// the disk has less room.
func (c *Cache) maxTree() int64 {
	most := min(c.maxFile(), c.size())
	if free, ok := filesys.Free(c.Dir); ok {
		most = min(most, free/10*9)
	}
	return most
}

// unpackingPrefix is the start of the names of the folders in which archives are unpacked.
const unpackingPrefix = ".unpacking-"

// unpackTo unpacks an archive into a temporary folder. When that is complete and on disk, it is
// renamed to content/SHA256/tree.
func (c *Cache) unpackTo(ctx context.Context, sum, archive, name string, unchanged func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	tree := c.path("content", sum, "tree")
	temp, remove, err := tempfolder.In(filepath.Dir(tree), unpackingPrefix)
	if err != nil {
		return err
	}
	defer remove()
	sums, err := unpack(ctx, archive, name, temp, c.maxTree(), c.maxFiles())
	if err != nil {
		return err
	}
	if err := unchanged(); err != nil {
		return err
	}
	if err := syncTree(temp); err != nil {
		return err
	}
	if err := c.writeTreeSums(sum, sums); err != nil {
		return err
	}
	old := tree + ".old-" + filepath.Base(filepath.Dir(temp))
	if err := os.Rename(tree, old); err == nil {
		c.log("the files in the cache are not those of %s; it is unpacked again", name)
		defer os.RemoveAll(old)
	}
	if err := os.Rename(temp, tree); err != nil {
		if _, there := os.Stat(tree); there != nil {
			return err
		} // another process was faster, on a file system without locks
	}
	c.rememberTree(sum)
	return nil
}

// unpack unpacks an archive into a folder and returns the SHA-256 of each file. The extension of
// name tells the kind. More than maxBytes bytes or maxFiles files are an error.
func unpack(ctx context.Context, archive, name, dir string, maxBytes int64, maxFiles int) (treeSums, error) {
	root, err := os.OpenRoot(dir) // no path leaves it, by whatever name or link
	if err != nil {
		return nil, err
	}
	defer root.Close()
	u := &unpacker{ctx: ctx, root: root, sums: treeSums{}, bytes: maxBytes, files: maxFiles, maxBytes: maxBytes, maxFiles: maxFiles}
	if strings.HasSuffix(strings.ToLower(name), ".zip") {
		return u.sums, u.zip(archive)
	}
	f, err := filesys.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return u.sums, u.tar(bufio.NewReaderSize(f, 1<<20))
}

// An unpacker writes the files of an archive. bytes and files are the numbers of bytes, and of
// files and folders, that it may still write.
type unpacker struct {
	ctx             context.Context
	root            *os.Root
	sums            treeSums
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
	end := &endReader{r: from}
	r := tar.NewReader(end)
	found := false
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if !found {
				return errors.New("the archive is empty, or not a tar")
			}
			// A complete tar ends with two blocks of zeros, at which the reader stops. If it read on to
			// the end of the stream, they are missing.
			if end.reached {
				return errors.New("the archive is damaged: it has no end mark, so files may be missing")
			}
			if _, err := io.Copy(io.Discard, from); err != nil { // reads and verifies the checksum of gzip
				return fmt.Errorf("the archive is damaged: %w", err)
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

// An endReader records whether the end of a stream was reached.
type endReader struct {
	r       io.Reader
	reached bool
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.reached = e.reached || n == 0 && err == io.EOF
	return n, err
}

func (u *unpacker) zip(archive string) error {
	f, err := filesys.Open(archive)
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
	for _, member := range r.File {
		switch mode := member.Mode(); {
		case strings.HasSuffix(member.Name, "/") || mode.IsDir():
			err = u.folder(member.Name)
		case !mode.IsRegular():
			err = fmt.Errorf("the archive holds %q, which is a link or a device", member.Name)
		default:
			err = u.member(member)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) member(member *zip.File) error {
	in, err := member.Open()
	if err != nil {
		return fmt.Errorf("the archive is damaged: %q: %w", member.Name, err)
	}
	defer in.Close()
	return u.file(member.Name, in)
}

// clean checks the name of a member and the number of members, and returns the name in the
// operating system's form.
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
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(from, u.bytes+1))
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
	u.sums[filepath.ToSlash(local)] = [sha256.Size]byte(hash.Sum(nil))
	return nil
}
