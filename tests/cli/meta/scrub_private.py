"""A model with every private thing that scrub knows: prints what is left and what is missed."""
import base64, json, os, struct, subprocess
def run(*words):
    return subprocess.run([os.environ["SFT"], "meta", *words], stdout=subprocess.PIPE, text=True).stdout
png=b'\x89PNG\r\n\x1a\n'+b'\0\0\0\rIHDR'+b'\0'*17+b'\0\0\0\x05tEXtpromp'+b'\0\0\0\0'
clean=b'\x89PNG\r\n\x1a\n'+b'\0\0\0\rIHDR'+b'\0'*17+b'\0\0\0\0IEND\xaeB`\x82'
private={
 'p1':'/home/john/x','p2':'saved to /data2/proj/run','p3':'C:\\Users\\J S\\x','p4':json.dumps({'a':'C:\\Users\\x'}),'p5':'\\\\nas\\share\\x',
 'p6':json.dumps({'a':'\\\\nas\\share'}),'p7':'file:///etc/x','p8':'~/models','p9':'$HOME/x','p10':'%USERPROFILE%\\x','p11':'D:/ai/loras',
 'p12':"--output=/opt/x/y",'p13':'["/srv/a/b"]','p14':'/Users/jane/Desktop','p15':'/workspace/x','p16':'/mnt/d/ai',
 'e1':'write me: john.doe@example.com','e2':'<a@b.co.uk>','e3':'mail a@b.org.',
 'u1':'https://civitai.com/api/download/models/1?token=abc','u2':'https://u:p@host.com/x','u3':'http://192.168.1.5:8188/','u4':'http://localhost:7860','u5':'http://nas/x','u6':'https://s3.amazonaws.com/b/k?X-Amz-Signature=1','u7':'http://desktop.local/x', 'u8':'https://hf.co/x?download=1&api_key=zzz',
 's1':'hf_ABCDEFGHIJKLMNOPQRSTUVWXYZabcd','s2':'sk-abcdefghijklmnopqrstuvwxyz012345',
 'h1':'192.168.0.12','hostname':'JOHNS-PC','user':'john','ss_session_id':'12','wandb_run':'x',
 'w1':json.dumps({'3':{'class_type':'KSampler','inputs':{}}}),'w2':json.dumps({'last_node_id':3,'nodes':[],'links':[]}),'prompt':'{}','workflow':'{}',
 'w3':json.dumps({"workflow":json.dumps({'3':{'class_type':'KSampler'}})}),
 'c1':json.dumps({'output_dir':'x','lr':1}),'c2':'output_dir = "x"\nlr=1','ot_config':'{}','config_x':json.dumps({'pretrained_model_name_or_path':'foo'}),
 'modelspec.thumbnail':'data:image/png;base64,'+base64.b64encode(png).decode(),
 '/home/john/key':'v',
 # as JSON spells them: "x\n/home", "\u5728/home", JSON in JSON, "\/"; other scripts; full stops
 'j1':json.dumps({'a':'x\n/home/john'}),'j2':json.dumps({'a':'x\nC:/x'}),'j3':json.dumps({'a':'\uff1a/data/x'}),
 'j4':json.dumps({'a':json.dumps('x\nhf_ABCDEFGHIJKLMNOPQRSTUVWXYZabcd')}),'j5':'{"a":"\\/home\\/john"}','j6':'https://a.co/x?y=1\\u0026token=abc',
 'o1':'\uff1a /\u6570\u636e/\u5f20\u4e09','o2':'\u5f20\u4e09@qq.com','o3':'http://nas.local\u3002','o4':'http://localhost.','o5':'**/home/john**','x'*130+'_api_key':'x',
 # pictures that are no data: URL from their first byte, in lines, and SVG
 'i1':json.dumps([base64.b64encode(png+bytes(9)).decode()]),'i2':json.dumps({'a':'data:image/png;base64,'+base64.encodebytes(bytes(99)+png).decode()}),
 'i3':'data:image/svg+xml,<svg a="/home/john/x">','i4':'data:image/svg+xml;base64,'+base64.b64encode(b'<svg a="/home/john/x">').decode(),
 'n1':json.dumps({'a':{'api_key':'x'}}),'n2':json.dumps({'a':json.dumps({'User_Name' :'x'})}),'n3':'{"a":1,"my_token" : "x"}','hub_token':'x','client_secret':'x','n4':json.dumps({'aws_access_key_id':'x'}),
 'ss_dataset_path':'x', 'image_folder':'mine',
}
harmless={
 'format':'pt','modelspec.title':'Neon City v1.2','modelspec.hash_sha256':'0x'+'ab'*32,'sshs_model_hash':'cd'*32,'ss_new_sd_model_hash':'ef'*32,
 'ss_sd_model_name':'sd_xl_base_1.0.safetensors','ss_base_model_version':'sdxl_base_v1-0','modelspec.trigger_phrase':'ohwx woman','modelspec.usage_hint':'Trigger word: mypetcat',
 'modelspec.description':'See https://civitai.com/models/123?modelVersionId=4 and <b>x</b> 3/4, and/or; ratio 16:9. Use 10.5 steps at 1.0','modelspec.author':'Jane',
 'modelspec.license':'CreativeML Open RAIL++-M','modelspec.implementation':'https://github.com/huggingface/diffusers',
 'ss_optimizer':'bitsandbytes.optim.adamw.AdamW8bit(weight_decay=0.1,betas=(0.9, 0.99))','ss_network_args':json.dumps({"conv_dim":"32","algo":"lokr","preset":"full"}),
 'software':json.dumps({"name":"ai-toolkit","repo":"https://github.com/ostris/ai-toolkit","version":"0.1"}),'training_info':json.dumps({"step":3,"epoch":1}),
 'ss_bucket_info':json.dumps({"buckets":{"0":{"resolution":[512,512],"count":3}},"mean_img_ar_error":0.1}),
 'ss_training_started_at':'1690000000.123456','ss_resolution':'(512, 512)','modelspec.date':'2023-07-16T18:13:38Z','ss_lr_scheduler':'cosine_with_restarts',
 'modelspec.resolution':'1024x1024','modelspec.architecture':'stable-diffusion-xl-v1-base/lora','quantization_config':json.dumps({"quant_method":"fp8","modules":["a"]}),
 'config':json.dumps({"transformer":{"num_layers":28,"attention_head_dim":128}}),'t':'LoRA@1690000000.12','ss_network_module':'networks.lora',
 'covers':json.dumps([base64.b64encode(b'\xff\xd8\xff\xe0\0\x10JFIF'+bytes(60)).decode()]),'idn':'http://\u4f8b\u5b50.\u4e2d\u56fd/a','face':'( /\u30fb\u03c9\u30fb/\uff09',
 'img':'data:image/png;base64,'+base64.b64encode(clean).decode(),'model':'runwayml/stable-diffusion-v1-5','ss_training_comment':'trigger: ohwx, use at 0.8',
 'tags':'a:b, c/d, (masterpiece:1.2), [x:y:0.5], 1/2','ip':'version 1.2.3.4','lora_adapter_metadata':json.dumps({"r":8,"target_modules":["to_q"],"base_model_name_or_path":None}),
 'pad_token':'!','eos_token':'<|endoftext|>','image_token':'<image>','tokens':json.dumps({'unk_token':'?','max_token':5,'user':'','host':None,'a':'user'}),
 'ss_clip':'\\(parenthesised\\)','emoji':'日本語/テスト (a)/b/c',
}
counts = {"ss_tag_frequency": json.dumps({"10_john": {"ohwx woman": 10, "smile": 3}, "5_jane": {"dog": 1}}),
          "ss_dataset_dirs": json.dumps({"10_john": {"n_repeats": 10, "img_count": 3}}),
          "ss_datasets": json.dumps([{"is_dreambooth": True, "resolution": [512, 512],
                                      "tag_frequency": {"john": {"a": 1}},
                                      "subsets": [{"img_count": 3, "image_dir": "john",
                                                   "class_tokens": "ohwx woman"}]}]),
          "ss_reg_dataset_dirs": "{}"}
odd = {"ss_tag_frequency": "{'10_john': 1}", "ss_dataset_dirs": json.dumps({"1": {"at": "/home/john"}})}
def write(path, meta):
    header = json.dumps({"__metadata__": meta, "w": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}})
    header += " " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header.encode() + b"abcd")
for name, more in (("x.safetensors", counts), ("y.safetensors", odd)):
    write(name, {**private, **harmless, **more})
    said = [line.split(" ", 1)[1] for line in run("scrub", name).splitlines() if line[:2] == "re"]
    left = json.loads(run("list", "--to-json", name))
    print("private and left:", sorted(set(left) & set(private)))
    print("harmless and not as it was:", [k for k in harmless if left.get(k) != harmless[k]])
    for key in more:
        print(key, left.get(key))
    print(run("scrub", name), end="")
    data = open(name, "rb").read()
    print("in the bytes:", [w for w in (b"john", b"jane", b"J S", b"token=abc", b"KSampler") if w in data])
for line in said:
    print(line)
# a value that another hides, in a file that only the official package's rules allow
hidden = '{"__metadata__":{"a":"/home/john/x","\\u0061":"ok","b":"\\u0031"},"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
with open("z.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(hidden)) + hidden.encode() + b"abcd")
print(run("scrub", "--level", "compat", "z.safetensors").split("; ")[0])
print(open("z.safetensors", "rb").read()[8:])
print(run("scrub", "--level", "compat", "z.safetensors").split("\n")[0])
