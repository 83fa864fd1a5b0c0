package mongod

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ballot is the last vote that a member gave. It's on disk before it counts, so
// that nobody votes twice in a term (src/mongo/db/repl/last_vote.idl).
type ballot struct {
	Term      int64 `bson:"term"`
	Candidate int   `bson:"candidateIndex"`
}

const voteFile = "election"

// save does nothing for a member without files.
func (b ballot) save(dir string) error {
	if dir == "" {
		return nil
	}
	raw, err := bson.Marshal(b)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, voteFile)
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func loadBallot(dir string) (ballot, error) {
	b := ballot{Candidate: -1}
	raw, err := os.ReadFile(filepath.Join(dir, voteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	return b, bson.Unmarshal(raw, &b)
}
