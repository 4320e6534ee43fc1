# Numbers with units, dates, lists, nothing at all: every operator.
sized() { # NAME BYTES METADATA
    st $1.safetensors "{\"__metadata__\":{$3},\"a\":{\"dtype\":\"U8\",\"shape\":[$2],\"data_offsets\":[0,$2]}}" $2
}
sized may 998000 '"modelspec.date":"2024-05-31T10:00:00Z","modelspec.title":"May","ss_epoch":"9","ss_seed":"18446744073709551615"'
sized june 2000000 '"modelspec.date":"2024-06-01","modelspec.tags":"one, two","modelspec.author":"Ann","ss_epoch":"12"'
sized year 2040000 '"modelspec.date":"2024","modelspec.license":"MIT","modelspec.tags":"three","ss_epoch":"last"'
sized none 1048000 '"modelspec.title":""'
w() { echo "${*/[0-9][0-9][0-9][0-9][0-9][0-9]B/LENGTH} -> $($SFT info -f path --where "$1" ${2:+--where "$2"} m/ | tr '\n' ' ')$?"; }
mkdir m; mv may.* june.* year.* none.* m
for x in 'shards.0.bytes>1' 'training.datasets.0.images>3' 'bytes>1MB' 'bytes>=1MB' 'bytes<1MB' 'bytes<=1MB' 'bytes=1MB' 'bytes!=1MB' 'bytes=1.0MB' \
         'bytes=1.00MB' 'bytes=2MB' 'bytes=2.0mb' 'bytes=1MiB' 'bytes<1MiB' 'bytes < 1.5 MB' 'bytes>1e6' \
         'bytes>1048100' "bytes=$(stat -c %s m/may.safetensors)B" 'bytes>-1' 'bytes<1EB' 'bytes<0.002GB' 'file.data_bytes=2M' \
         'parameters=2M' 'parameters>2M' 'parameters>=2M' 'file.parameters<1000K' 'tensors=1' \
         'tensors==1' 'tensors!=1' 'training.epoch>9' 'training.epoch>=9' 'training.epoch<12' \
         'metadata.ss_epoch>9' 'metadata.ss_epoch<100' 'metadata.ss_epoch=9.0' 'metadata.ss_epoch=last' \
         'metadata.ss_epoch~a' 'metadata.ss_epoch!=9' 'training.seed=18446744073709551615' \
         'date=2024' 'date>2024' 'date=2024-05' 'date!=2024-05' 'date>2024-05' 'date<2024-06' \
         'date<=2024-05-31' 'date>=2024-06-01' 'date<2024-05-31T10:01' 'date=2024-05-31 10:00:00Z' \
         'date>2023' 'date~-05-' 'tags=two' 'tags!=two' 'tags~t' 'author=' 'author!=' \
         'license=' 'license!=' 'author!=ann' 'author=ANN' 'merge=' 'nsfw!=true' 'complete=yes' \
         'complete=no' 'rank!=4' 'rank>=0'; do
    w "$x"
done
w 'bytes>1MB' 'date=2024'
w 'bytes>1MB' 'bytes<2.01MB'
